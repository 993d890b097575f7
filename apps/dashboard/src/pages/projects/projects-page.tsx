import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { projectsQuery } from '../../api/projects.ts';
import { Page } from '../../parts/page.tsx';
import { Empty, QueryView } from '../../parts/states.tsx';
import { type Column, Rows } from '../../parts/table.tsx';
import { Copyable, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { CreateProject } from './create-project.tsx';
import { PortalOrigins } from './portal-origins.tsx';

export function ProjectsPage() {
  const query = useQuery(projectsQuery);
  const { canManageProjects } = useRights();
  return (
    <Page title="Projects and apps" actions={canManageProjects && <CreateProject />}>
      <QueryView query={query} what="the projects">
        {(projects) =>
          projects.length === 0 ? (
            <Empty title="There is no project yet">
              <Text>
                A project groups the apps that send messages. Create one, then an app in it.
              </Text>
            </Empty>
          ) : (
            <Rows caption="Projects" columns={COLUMNS} rows={projects} keyOf={({ id }) => id} />
          )
        }
      </QueryView>
      {canManageProjects && <PortalOrigins />}
    </Page>
  );
}

const COLUMNS: readonly Column<Schemas['Project']>[] = [
  {
    name: 'Project',
    cell: ({ id, name, description }) => (
      <>
        <Link to="/projects/$projectId" params={{ projectId: id }}>
          <strong>{name}</strong>
        </Link>
        <Text size="xs" c="dimmed">
          {description}
        </Text>
      </>
    ),
  },
  { name: 'Environment', cell: ({ environment }) => environment },
  { name: 'Id', cell: ({ id }) => <Copyable text={id} name="project id" /> },
  { name: 'Uid', cell: ({ uid }) => (uid === null ? 'none' : <Copyable text={uid} name="uid" />) },
  { name: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
];
