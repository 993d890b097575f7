import { Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { ACTION_WORDS } from '../../api/words.ts';
import { Page } from '../../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../../parts/states.tsx';
import { Status, type Tone } from '../../parts/status.tsx';
import { type Column, Rows } from '../../parts/table.tsx';
import { Copyable, When } from '../../parts/values.tsx';
import { AuditFilters } from './audit-filters.tsx';
import { type AuditEvent, auditQuery } from './audit-query.ts';

const route = getRouteApi('/audit');

export function AuditPage() {
  const filter = route.useSearch();
  const query = useInfiniteQuery(auditQuery(filter));
  return (
    <Page title="Audit log">
      <AuditFilters />
      <QueryView query={query} what="the audit log">
        {({ pages }) => (
          <Events events={pages.flatMap(({ data }) => data)} isFiltered={hasAny(filter)} />
        )}
      </QueryView>
      <ShowMore query={query}>Show older events</ShowMore>
    </Page>
  );
}

const hasAny = (filter: object): boolean => Object.keys(filter).length > 0;

function Events({ events, isFiltered }: { events: AuditEvent[]; isFiltered: boolean }) {
  if (events.length === 0 && isFiltered) {
    return (
      <Empty title="No event matches">
        <Text>Ids must be whole. Loosen a filter to see more.</Text>
      </Empty>
    );
  }
  if (events.length === 0) {
    return (
      <Empty title="Nothing was changed yet">
        <Text>Each change, and each look at a secret, is recorded here with who did it.</Text>
      </Empty>
    );
  }
  return <Rows caption="Audit events" columns={COLUMNS} rows={events} keyOf={({ id }) => id} />;
}

const TONES: Record<AuditEvent['outcome'], Tone> = {
  started: 'waiting',
  done: 'good',
  failed: 'bad',
};

const COLUMNS: readonly Column<AuditEvent>[] = [
  { name: 'When', cell: ({ createdAt }) => <When at={createdAt} /> },
  { name: 'What', cell: ({ action }) => ACTION_WORDS[action] },
  { name: 'Who', cell: ({ actor }) => <Actor actor={actor} /> },
  {
    name: 'To',
    cell: ({ target }) => (target.id === null ? target.kind : <Copyable text={target.id} />),
  },
  { name: 'Outcome', cell: ({ outcome }) => <Status tone={TONES[outcome]}>{outcome}</Status> },
  { name: 'Changes', cell: ({ changes }) => <Changes changes={changes} /> },
];

function Changes({ changes }: { changes: AuditEvent['changes'] }) {
  if (changes.length === 0) return null;
  return changes.map(({ field, before, after }) => (
    <div key={field}>
      <code>{field}</code>: {String(before ?? 'none')} → {String(after ?? 'none')}
    </div>
  ));
}

function Actor({ actor }: { actor: AuditEvent['actor'] }) {
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
