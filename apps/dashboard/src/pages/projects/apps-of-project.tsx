import { Text } from '@mantine/core';
import { useInfiniteQuery, useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { appCountsQuery, appsQuery } from '../../api/projects.ts';
import { Section } from '../../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../../parts/states.tsx';
import { WebhookStatus } from '../../parts/status.tsx';
import { type Column, Rows } from '../../parts/table.tsx';
import { countText } from '../../parts/time-words.ts';
import { Copyable, When } from '../../parts/values.tsx';

type App = Schemas['App'];
type Counts = ReadonlyMap<string, Schemas['AppCounts']>;

/** Page by page: a project may have any number of apps. */
export function Apps({ projectId }: { projectId: string }) {
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
    { name: 'Environment', cell: ({ environment }) => environment },
    { name: 'Webhooks', isNumber: true, cell: count('webhooks') },
    { name: 'Succeeded, 24 h', isNumber: true, cell: count('succeeded') },
    { name: 'Failed, 24 h', isNumber: true, cell: count('failed') },
    { name: 'Id', cell: ({ id }) => <Copyable text={id} name="app id" /> },
    {
      name: 'Uid',
      cell: ({ uid }) => (uid === null ? 'none' : <Copyable text={uid} name="uid" />),
    },
    { name: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
  ];
}

function AppName({ app: { id, name, description, held } }: { app: App }) {
  return (
    <>
      <Link to="/apps/$appId" params={{ appId: id }}>
        <strong>{name}</strong>
      </Link>{' '}
      {held !== null && <WebhookStatus state="on hold" />}
      <Text size="xs" c="dimmed">
        {description}
      </Text>
    </>
  );
}
