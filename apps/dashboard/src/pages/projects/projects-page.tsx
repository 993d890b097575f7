import { Button, Group, Text, Textarea } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { portalSettingsQuery, projectsQuery, writePortalSettings } from '../../api/projects.ts';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, Failed, QueryView } from '../../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { Copyable, Cut, None, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { CreateProject } from './named-form.tsx';
import styles from './projects.module.css';

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
          <strong>
            <Cut text={name} />
          </strong>
        </Link>
        {description !== undefined && <Cut text={description} lines={2} look="small" />}
      </>
    ),
  },
  { name: 'Environment', width: 9, cell: ({ environment }) => environment },
  { name: 'Id', width: 18, cell: ({ id }) => <Copyable text={id} name="project id" /> },
  {
    name: 'Uid',
    width: 12,
    cell: ({ uid }) => (uid === null ? <None /> : <Copyable text={uid} name="uid" />),
  },
  { name: 'Created', width: WIDTHS.time, cell: ({ createdAt }) => <When at={createdAt} /> },
];

/** The sites of the company that may show its portal in a frame. */
function PortalOrigins() {
  const query = useQuery(portalSettingsQuery);
  return (
    <Section title="Portal in a frame">
      <Text size="sm">
        Pages of these origins may show the portal in a frame, and logos may come from them. Without
        one, the portal opens in a window of its own only.
      </Text>
      <QueryView query={query} what="the settings of the portal">
        {({ origins }) => <OriginsForm origins={origins} />}
      </QueryView>
    </Section>
  );
}

function OriginsForm({ origins }: { origins: readonly string[] }) {
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: writePortalSettings,
    onSuccess: () => client.invalidateQueries({ queryKey: portalSettingsQuery.queryKey }),
  });
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        const text = new FormData(event.currentTarget).get('origins');
        save.mutate({ origins: typeof text === 'string' ? text.split(/\s+/).filter(Boolean) : [] });
      }}
    >
      {save.error !== null && <Failed error={save.error} what="save the origins" />}
      <Textarea
        name="origins"
        label="Origins, one on each line"
        placeholder="https://app.example.com"
        rows={3}
        defaultValue={origins.join('\n')}
      />
      <Group>
        <Button type="submit" variant="default" loading={save.isPending}>
          Save origins
        </Button>
        {save.isSuccess && (
          <Text size="sm" role="status">
            Saved.
          </Text>
        )}
      </Group>
    </form>
  );
}
