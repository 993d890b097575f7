import { Text } from '@mantine/core';
import { useInfiniteQuery, useQueries, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.ts';
import { appCountsQuery, appsQuery, projectQuery } from '../../api/projects.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Facts } from '../../parts/figures.tsx';
import { LinkButton, Page, Section } from '../../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../../parts/states.tsx';
import { WebhookStatus } from '../../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { countText } from '../../parts/time-words.ts';
import { Copyable, Cut, None, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { useOwnFacts } from '../own-fields.tsx';
import { CreateApp, EditNamed } from './named-form.tsx';

const route = getRouteApi('/projects/$projectId');

export function ProjectPage() {
  const { projectId } = route.useParams();
  const project = useQuery(projectQuery(projectId));
  const apps = useInfiniteQuery(appsQuery(projectId));
  const count = apps.data?.pages.flat().length ?? 0;
  const { canManageProjects } = useRights();
  const actions = project.data !== undefined && (
    <>
      {canManageProjects && <CreateApp projectId={projectId} />}
      <LinkButton to="/event-types" search={{ projectId }} variant="default">
        Event types
      </LinkButton>
      {canManageProjects && (
        <>
          <EditProject project={project.data} />
          <DeleteProject project={project.data} apps={count} isMore={apps.hasNextPage} />
        </>
      )}
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
        ['Description', (description ?? '') === '' ? <None key="description" /> : description],
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

type App = Schemas['App'];
type Counts = ReadonlyMap<string, Schemas['AppCounts']>;

/** Page by page: a project may have any number of apps. */
function Apps({ projectId }: { projectId: string }) {
  const apps = useInfiniteQuery(appsQuery(projectId));
  const counts = useCounts(apps.data?.pages ?? []);
  return (
    <Section title="Apps">
      <QueryView query={apps} what="the apps">
        {({ pages }) =>
          pages.flat().length === 0 ? (
            <Empty title="There is no app in this project">
              <Text>An app is the sender of messages. Its webhooks get them.</Text>
            </Empty>
          ) : (
            <Rows
              caption="Apps"
              columns={columnsOf(counts)}
              rows={pages.flat()}
              keyOf={({ id }) => id}
            />
          )
        }
      </QueryView>
      <ShowMore query={apps}>Show newer apps</ShowMore>
    </Section>
  );
}

/** One request for each page of apps. */
function useCounts(pages: readonly App[][]): Counts {
  const asked = pages.map((page) => appCountsQuery(page.map(({ id }) => id)));
  const found = useQueries({ queries: asked });
  return new Map(found.flatMap(({ data = [] }) => data).map((counts) => [counts.appId, counts]));
}

function columnsOf(counts: Counts): Column<App>[] {
  const count =
    (name: 'webhooks' | 'succeeded' | 'failed') =>
    ({ id }: App): string => {
      const found = counts.get(id);
      return found === undefined ? '…' : countText(found[name]);
    };
  return [
    { name: 'App', cell: (app) => <AppName app={app} /> },
    { name: 'Environment', width: 8.5, cell: ({ environment }) => environment },
    { name: 'Webhooks', width: 7, isNumber: true, cell: count('webhooks') },
    { name: 'Succeeded, 24 h', width: 8, isNumber: true, cell: count('succeeded') },
    { name: 'Failed, 24 h', width: 6, isNumber: true, cell: count('failed') },
    {
      name: 'Uid',
      width: 9,
      cell: ({ uid }) => (uid === null ? <None /> : <Copyable text={uid} name="uid" />),
    },
    { name: 'Created', width: WIDTHS.time, cell: ({ createdAt }) => <When at={createdAt} /> },
  ];
}

function AppName({ app: { id, name, description, held } }: { app: App }) {
  return (
    <>
      <Link to="/apps/$appId" params={{ appId: id }}>
        <strong>
          <Cut text={name} />
        </strong>
      </Link>
      {held !== null && <WebhookStatus state="on hold" />}
      <Cut text={description} lines={2} look="small" />
      <Copyable text={id} name="app id" />
    </>
  );
}
