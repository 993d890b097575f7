import { Button, NativeSelect, Text } from '@mantine/core';
import { infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answerOf, api, given, type Schemas } from '../api/client.ts';
import { ACTION_WORDS, AUDIT_ACTIONS } from '../api/words.ts';
import { FilterInput, TimeInput } from '../parts/filters.tsx';
import { valueTo } from '../parts/form-fields.ts';
import { Page } from '../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../parts/states.tsx';
import { Status, type Tone } from '../parts/status.tsx';
import { type Column, Rows } from '../parts/table.tsx';
import { Copyable, When } from '../parts/values.tsx';
import type { AuditSearch } from '../search.ts';
import styles from './audit.module.css';

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

const ACTIONS = [
  { value: '', label: 'Anything' },
  ...AUDIT_ACTIONS.map((value) => ({ value, label: ACTION_WORDS[value] })),
];

/** The filters that the API has, kept in the address. */
function AuditFilters() {
  const filter = route.useSearch();
  const navigate = route.useNavigate();
  const set =
    (name: keyof AuditSearch) =>
    (value: string): void => {
      void navigate({
        search: (before) => ({ ...before, [name]: value || undefined }),
        replace: true,
      });
    };
  const isAny = Object.keys(filter).length > 0;
  return (
    <div className={styles.filters} key={isAny ? 'filtered' : 'clear'}>
      <NativeSelect
        label="What"
        data={ACTIONS}
        value={filter.action ?? ''}
        onChange={valueTo(set('action'))}
      />
      <FilterInput
        label="Who"
        placeholder="key_…, plnk_…, admin, system"
        value={filter.actor}
        set={set('actor')}
      />
      <FilterInput
        label="To what"
        placeholder="Any id"
        value={filter.targetId}
        set={set('targetId')}
      />
      <TimeInput label="From (your time)" value={filter.from} set={set('from')} />
      <TimeInput label="Until (your time)" value={filter.to} set={set('to')} />
      {isAny && (
        <Button variant="default" onClick={() => void navigate({ search: {} })}>
          Clear filters
        </Button>
      )}
    </div>
  );
}

type AuditEvent = Schemas['AuditEvent'];

interface AuditFilter {
  action?: AuditEvent['action'] | undefined;
  /** The id of a key or a portal link, `admin` or `system`. */
  actor?: string | undefined;
  targetId?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ['audit', filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => {
      const query = given({ ...filter, cursor: pageParam });
      return answerOf(api.GET('/audit-events', { params: { query } }));
    },
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
