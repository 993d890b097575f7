import { NativeSelect, Text } from '@mantine/core';
import { infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useKeyName } from '../api/api-keys.ts';
import { answerOf, api, given, type Schemas } from '../api/client.ts';
import { ACTION_WORDS, AUDIT_ACTIONS, webhookWords } from '../api/words.ts';
import { FilterBar, FilterInput, TimeInput } from '../parts/filters.tsx';
import { valueTo } from '../parts/form-fields.ts';
import { Page } from '../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../parts/states.tsx';
import { Status, type Tone } from '../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { absoluteTime } from '../parts/time-words.ts';
import { Copyable, Cut, Expandable, None, When } from '../parts/values.tsx';
import type { AuditSearch } from '../search.ts';
import { useApps, useWebhooks, WhoseId } from './names.tsx';

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
  const names = useNames(events);
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
  const columns = columnsWith(names);
  return <Rows caption="Audit events" columns={columns} rows={events} keyOf={({ id }) => id} />;
}

const TONES: Record<AuditEvent['outcome'], Tone> = {
  started: 'waiting',
  done: 'good',
  failed: 'bad',
};

/** What the targets of events are called, by their ids. */
type Names = ReadonlyMap<string, string>;

function useNames(events: readonly AuditEvent[]): Names {
  const idsOf = (kind: AuditEvent['target']['kind']) =>
    events.map(({ target }) => (target.kind === kind ? target.id : null));
  const webhooks = useWebhooks(idsOf('webhook'));
  const apps = useApps(idsOf('app'));
  return new Map([
    ...[...webhooks].map(([id, webhook]) => [id, webhookWords(webhook).name] as const),
    ...[...apps].map(([id, { name }]) => [id, name] as const),
  ]);
}

const columnsWith = (names: Names): readonly Column<AuditEvent>[] => [
  { name: 'When', width: WIDTHS.time, cell: ({ createdAt }) => <When at={createdAt} /> },
  { name: 'What', width: 10, cell: ({ action }) => ACTION_WORDS[action] },
  { name: 'Who', width: 10.5, cell: ({ actor }) => <Actor actor={actor} /> },
  { name: 'To', width: 10.5, cell: ({ target }) => <Target target={target} names={names} /> },
  {
    name: 'Outcome',
    width: 7,
    cell: ({ outcome }) => <Status tone={TONES[outcome]}>{outcome}</Status>,
  },
  { name: 'Changes', cell: ({ changes }) => <Changes changes={changes} /> },
];

const TARGET_WORDS: Record<AuditEvent['target']['kind'], string> = {
  company: 'the company',
  apiKey: 'API key',
  signingKey: 'signing key',
  portalLink: 'portal link',
  person: 'person',
  invitation: 'invitation',
  project: 'project',
  eventType: 'event type',
  app: 'app',
  webhook: 'webhook',
  message: 'message',
  delivery: 'delivery',
  cancellation: 'cancellation',
  resend: 'resend',
  deadLetters: 'dead letters',
  ingestRejects: 'rejected records',
  encryptionKeys: 'encryption keys',
};

interface TargetProps extends Pick<AuditEvent, 'target'> {
  names: Names;
}

function Target({ target: { kind, id }, names }: TargetProps) {
  if (id === null) return TARGET_WORDS[kind];
  const name =
    kind === 'apiKey' ? <KeyName id={id} /> : <Cut text={names.get(id) ?? TARGET_WORDS[kind]} />;
  return (
    <>
      {name}
      <Copyable text={id} />
    </>
  );
}

function KeyName({ id }: { id: string }) {
  return <Cut text={useKeyName(id) ?? TARGET_WORDS.apiKey} />;
}

function Changes({ changes }: Pick<AuditEvent, 'changes'>) {
  if (changes.length === 0) return <None />;
  return changes.map(({ field, before, after }) => (
    <Expandable key={field} text={`${field}: ${changeText(before, after)}`} />
  ));
}

type Value = AuditEvent['changes'][number]['before'];

function changeText(before: Value, after: Value): string {
  return before === null ? valueText(after) : `${valueText(before)} → ${valueText(after)}`;
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function valueText(value: Value): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return '–';
  if (Array.isArray(value)) return value.join(', ');
  const text = String(value);
  return ISO_TIME.test(text) ? absoluteTime(Date.parse(text)) : text;
}

function Actor({ actor }: { actor: AuditEvent['actor'] }) {
  switch (actor.kind) {
    case 'admin':
      return 'an operator';
    case 'system':
      return 'Posthorn itself';
    case 'apiKey':
      return <WhoseId id={actor.keyId} />;
    case 'portalLink':
      return (
        <>
          a portal link <Copyable text={actor.linkId} name="portal link id" />
        </>
      );
    case 'person':
      return <PersonActor actor={actor} />;
  }
}

type PersonWho = Extract<AuditEvent['actor'], { kind: 'person' }>;

/** The name is the one that the person had then. It leads to everything that they did. */
function PersonActor({ actor: { personId, name } }: { actor: PersonWho }) {
  const shown = name ?? personId;
  return (
    <Link
      from="/audit"
      to="/audit"
      search={(before) => ({ ...before, actor: personId })}
      aria-label={`Show only what ${shown} did`}
    >
      <Cut text={shown} />
    </Link>
  );
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
  return (
    <FilterBar isFiltered={hasAny(filter)} clear={() => void navigate({ search: {} })}>
      <NativeSelect
        label="What"
        data={ACTIONS}
        value={filter.action ?? ''}
        onChange={valueTo(set('action'))}
      />
      <FilterInput
        label="Who"
        placeholder="usr_…, key_…, plnk_…, admin, system"
        value={filter.actor}
        set={set('actor')}
      />
      <FilterInput
        label="To what"
        placeholder="Any id"
        value={filter.targetId}
        set={set('targetId')}
      />
      <TimeInput label="From (your time)" value={filter.since} set={set('since')} />
      <TimeInput label="Until (your time)" value={filter.until} set={set('until')} />
    </FilterBar>
  );
}

type AuditEvent = Schemas['AuditEvent'];

interface AuditFilter {
  action?: AuditEvent['action'] | undefined;
  /** The id of a person, a key or a portal link, `admin` or `system`. */
  actor?: string | undefined;
  targetId?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
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
