import { queryOptions, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answerOf, api, dataOf, type Schemas } from '../../api/client.ts';
import { appsQuery } from '../../api/projects.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Facts } from '../../parts/figures.tsx';
import { Page } from '../../parts/page.tsx';
import { QueryView } from '../../parts/states.tsx';
import { Copyable, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { useOwnFacts } from '../own/own-facts.tsx';
import { Apps } from './apps-of-project.tsx';
import { CreateApp } from './create-project.tsx';
import { EditNamed } from './named-form.tsx';

const route = getRouteApi('/projects/$projectId');

const projectQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['project', projectId],
    queryFn: () => dataOf(api.GET('/projects/{projectId}', { params: { path: { projectId } } })),
  });

export function ProjectPage() {
  const { projectId } = route.useParams();
  const project = useQuery(projectQuery(projectId));
  const apps = useInfiniteQuery(appsQuery(projectId));
  const count = apps.data?.pages.flat().length ?? 0;
  const { canManageProjects } = useRights();
  const actions = canManageProjects && project.data !== undefined && (
    <>
      <CreateApp projectId={projectId} />
      <EditProject project={project.data} />
      <DeleteProject project={project.data} apps={count} isMore={apps.hasNextPage} />
    </>
  );
  return (
    <Page
      title={project.data?.name ?? 'Project'}
      under={<Copyable text={projectId} name="project id" />}
      actions={actions}
    >
      <QueryView query={project} what="the project">
        {(found) => <ProjectFacts project={found} />}
      </QueryView>
      <Apps projectId={projectId} />
    </Page>
  );
}

function ProjectFacts({ project }: { project: Schemas['Project'] }) {
  const { environment, description, createdAt } = project;
  return (
    <Facts
      facts={[
        ['Environment', environment],
        ['Description', (description ?? '') === '' ? 'none' : description],
        ...useOwnFacts(project),
        ['Created', <When key="created" at={createdAt} />],
      ]}
    />
  );
}

function DeleteProject({
  project: { id, name },
  apps,
  isMore,
}: {
  project: Schemas['Project'];
  apps: number;
  isMore: boolean;
}) {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const what = isMore ? `its ${apps} or more apps` : apps === 1 ? 'its app' : `its ${apps} apps`;
  return (
    <Confirm
      action="Delete project"
      consequence={`“${name}”, ${what} and all their webhooks will be deleted, and pending deliveries cancelled. Messages and deliveries stay readable.`}
      perform={() =>
        answerOf(api.DELETE('/projects/{projectId}', { params: { path: { projectId: id } } }))
      }
      onDone={() => {
        void client.invalidateQueries();
        void navigate({ to: '/projects' });
      }}
    />
  );
}

function EditProject({ project }: { project: Schemas['Project'] }) {
  const client = useQueryClient();
  const params = { path: { projectId: project.id } };
  return (
    <EditNamed
      kind="project"
      stored={project}
      change={(body) => answerOf(api.PUT('/projects/{projectId}', { params, body }))}
      onChanged={() => void client.invalidateQueries()}
    />
  );
}
