import { Button, Text } from '@mantine/core';
import { infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.ts';
import { given } from '../../api/queries.ts';
import { Copyable } from '../../parts/copy/copyable.tsx';
import { Page } from '../../parts/page.tsx';
import { QueryView } from '../../parts/query-view.tsx';
import { Rows, type Column } from '../../parts/rows.tsx';
import { Empty } from '../../parts/states.tsx';
import { Status, type Tone } from '../../parts/status.tsx';
import { When } from '../../parts/time/when.tsx';

const auditQuery = infiniteQueryOptions({
  queryKey: ['audit'],
  initialPageParam: undefined as string | undefined,
  queryFn: ({ pageParam }) =>
    answerOf(api.GET('/api/v1/audit-events', { params: { query: given({ cursor: pageParam }) } })),
  getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
});

export function AuditPage() {
  const query = useInfiniteQuery(auditQuery);
  return (
    <Page title="Audit log">
      <QueryView query={query} what="the audit log">
        {({ pages }) => <Events events={pages.flatMap(({ data }) => data)} />}
      </QueryView>
      {query.hasNextPage && (
        <Button
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Show older events
        </Button>
      )}
    </Page>
  );
}

function Events({ events }: { events: Event[] }) {
  if (events.length === 0) {
    return (
      <Empty title="Nothing was changed yet">
        <Text>Each change, and each look at a secret, is recorded here with who did it.</Text>
      </Empty>
    );
  }
  return <Rows caption="Audit events" columns={COLUMNS} rows={events} keyOf={({ id }) => id} />;
}

type Event = Schemas['AuditEvent'];

const TONES: Record<Event['outcome'], Tone> = { started: 'waiting', done: 'good', failed: 'bad' };

const COLUMNS: readonly Column<Event>[] = [
  { name: 'When', cell: ({ createdAt }) => <When at={createdAt} /> },
  { name: 'What', cell: ({ action }) => action.replace('.', ': ').replaceAll('_', ' ') },
  { name: 'Who', cell: ({ actor }) => <Actor actor={actor} /> },
  {
    name: 'To',
    cell: ({ target }) => (target.id === null ? target.kind : <Copyable text={target.id} />),
  },
  { name: 'Outcome', cell: ({ outcome }) => <Status tone={TONES[outcome]}>{outcome}</Status> },
  { name: 'Changes', cell: ({ changes }) => <Changes changes={changes} /> },
];

function Changes({ changes }: { changes: Event['changes'] }) {
  if (changes.length === 0) return null;
  return changes.map(({ field, before, after }) => (
    <div key={field}>
      <code>{field}</code>: {String(before ?? 'none')} → {String(after ?? 'none')}
    </div>
  ));
}

function Actor({ actor }: { actor: Event['actor'] }) {
  switch (actor.kind) {
    case 'admin':
      return 'an operator';
    case 'system':
      return 'Posthorn itself';
    case 'apiKey':
      return <Copyable text={actor.keyId} name="key id" />;
    case 'portalLink':
      return <Copyable text={actor.linkId} name="portal link id" />;
  }
}
