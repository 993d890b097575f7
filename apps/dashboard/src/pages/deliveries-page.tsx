import { Button, Checkbox, Group, SegmentedControl, Select, Text } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schemas } from '../api/client.ts';
import {
  cancelDelivery,
  resendDelivery,
  type UndeliveredFilter,
  undeliveredQuery,
} from '../api/messages.ts';
import type { FoundWebhook } from '../api/webhooks.ts';
import { cancelWords, FILTER_REASONS, type FilterReason, outcomeWords } from '../api/words.ts';
import { Confirm } from '../parts/dialog.tsx';
import {
  AppSelect,
  EventTypeInput,
  FilterBar,
  TimeInput,
  WebhookSelect,
} from '../parts/filters.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { countText } from '../parts/time-words.ts';
import { Cut, None, When } from '../parts/values.tsx';
import { UNDELIVERED } from '../search.ts';
import { useRights, useSession } from '../session/session-context.ts';
import { useWebhooks, WebhookLink } from './names.tsx';
import { AllThatMatch } from './all-that-match.tsx';
import { CancelPending } from './webhooks/recover.tsx';

const route = getRouteApi('/deliveries');

type DeliveryStatus = (typeof UNDELIVERED)[number];

/** What waits for another attempt, and what ended without success, of all webhooks. */
export function DeliveriesPage() {
  const search = route.useSearch();
  const { canControl } = useRights();
  const navigate = route.useNavigate();
  const query = useInfiniteQuery(undeliveredQuery(search));
  const { status = 'pending', webhookId } = search;
  return (
    <Page
      title="Undelivered"
      actions={
        <SegmentedControl
          aria-label="Status"
          data={UNDELIVERED.map((value) => ({ value, label: value }))}
          value={status}
          onChange={(value) =>
            void navigate({
              // What a pending delivery waits for, and why one has ended, are of one status.
              search: ({ waiting: _waiting, reason: _reason, ...before }) => ({
                ...before,
                status: value,
              }),
              replace: true,
            })
          }
        />
      }
    >
      <Filters search={search} status={status} />
      <AllThatMatch filter={search} />
      {canControl && webhookId !== undefined && status === 'pending' && (
        <CancelPending webhookId={webhookId} isListed />
      )}
      <QueryView query={query} what="the deliveries">
        {({ pages }) => (
          <Deliveries
            deliveries={pages.flatMap(({ data }) => data)}
            isAll={!query.hasNextPage}
            status={status}
          />
        )}
      </QueryView>
      <ShowMore query={query}>Show older deliveries</ShowMore>
    </Page>
  );
}

function Filters({ search, status }: { search: UndeliveredFilter; status: DeliveryStatus }) {
  const navigate = route.useNavigate();
  const { key } = useSession();
  const { appId, webhookId, eventType, waiting, reason, since, until } = search;
  const given = [appId, webhookId, eventType, waiting, reason, since, until];
  const isFiltered = given.some((each) => each !== undefined);
  const set =
    (name: keyof UndeliveredFilter) =>
    (value: string): void => {
      void navigate({
        search: (before) => ({ ...before, [name]: value || undefined }),
        replace: true,
      });
    };
  return (
    <FilterBar
      isFiltered={isFiltered}
      clear={() => void navigate({ search: { status }, replace: true })}
    >
      {key.appId === null && (
        <AppSelect value={appId ?? ''} noneLabel="All apps" onChange={set('appId')} />
      )}
      <WebhookSelect value={webhookId ?? ''} appId={appId} onChange={set('webhookId')} />
      <EventTypeInput value={eventType} set={set('eventType')} />
      {status === 'pending' ? (
        <Choice label="Waits" options={WAIT_OPTIONS} value={waiting} set={set('waiting')} />
      ) : (
        <Choice
          label="Reason"
          options={REASONS_OF[status].map((each) => ({ value: each, label: reasonName(each) }))}
          value={reason}
          set={set('reason')}
        />
      )}
      <TimeInput label="Since" value={since} set={set('since')} />
      <TimeInput label="Until" value={until} set={set('until')} />
    </FilterBar>
  );
}

const WAIT_OPTIONS = [
  { value: 'hold', label: 'on hold' },
  { value: 'order', label: 'for its key' },
  { value: 'time', label: 'for its time' },
];

const OF_FAILURES: readonly FilterReason[] = ['gone', 'not_retryable', 'aborted', 'all_attempts'];

/** The reasons of each status (docs/contract.md C10.8 and C6.21 to C6.23). */
const REASONS_OF = {
  exhausted: FILTER_REASONS.filter((each) => isOfFailure(each)),
  cancelled: FILTER_REASONS.filter((each) => !isOfFailure(each)),
};

function isOfFailure(reason: FilterReason): boolean {
  return OF_FAILURES.includes(reason);
}

const reasonName = (reason: FilterReason): string => reason.replaceAll('_', ' ');

interface ChoiceProps {
  label: string;
  options: { value: string; label: string }[];
  value: string | undefined;
  set: (value: string) => void;
}

function Choice({ label, options, value, set }: ChoiceProps) {
  return (
    <Select
      label={label}
      placeholder="All"
      clearable
      clearButtonProps={{ 'aria-label': `Clear: ${label}` }}
      data={options}
      value={value ?? null}
      onChange={(next) => {
        set(next ?? '');
      }}
    />
  );
}

interface DeliveriesProps {
  deliveries: Schemas['ListedDelivery'][];
  /** Nothing follows. */
  isAll: boolean;
  status: DeliveryStatus;
}

function Deliveries({ deliveries, isAll, status }: DeliveriesProps) {
  const { canControl, canResend } = useRights();
  const webhooks = useWebhooks(deliveries.map(({ webhookId }) => webhookId));
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  if (deliveries.length === 0 && isAll) {
    return (
      <Empty title={`No delivery is ${status}`}>
        <Text>
          A pending delivery is listed when it has had an attempt, or waits on hold or for its time.
          The list of messages has all others.
        </Text>
      </Empty>
    );
  }
  const mayAct = status === 'pending' ? canControl : canResend;
  const shown = deliveries.filter(({ id }) => selected.has(id)).map(({ id }) => id);
  return (
    <>
      {mayAct && (
        <Selection
          all={deliveries.map(({ id }) => id)}
          selected={shown}
          select={(ids) => {
            setSelected(new Set(ids));
          }}
          isPending={status === 'pending'}
        />
      )}
      <Rows
        caption={`Deliveries that are ${status}`}
        columns={[
          ...(mayAct ? [selectColumn(selected, setSelected)] : []),
          ...columnsWith(webhooks),
        ]}
        rows={deliveries}
        keyOf={({ id }) => id}
      />
    </>
  );
}

function selectColumn(
  selected: ReadonlySet<string>,
  setSelected: (ids: ReadonlySet<string>) => void,
): Column<Schemas['ListedDelivery']> {
  return {
    name: 'Select',
    width: 4.5,
    cell: ({ id }) => (
      <Checkbox
        aria-label={`Select ${id}`}
        checked={selected.has(id)}
        onChange={({ currentTarget: { checked } }) => {
          const others = [...selected].filter((each) => each !== id);
          setSelected(new Set(checked ? [...others, id] : others));
        }}
      />
    ),
  };
}

interface SelectionProps {
  all: readonly string[];
  selected: readonly string[];
  select: (ids: readonly string[]) => void;
  isPending: boolean;
}

/** What can be done with several deliveries of the page at once. */
function Selection({ all, selected, select, isPending }: SelectionProps) {
  const client = useQueryClient();
  const isAll = selected.length === all.length;
  const count = `${countText(selected.length)} ${selected.length === 1 ? 'delivery' : 'deliveries'}`;
  const refresh = (): void => void client.invalidateQueries({ queryKey: ['undelivered'] });
  // What was done before a failure is shown as it is now.
  const perform = (): Promise<void> =>
    forEach(selected, isPending ? cancelDelivery : resendDelivery).finally(refresh);
  return (
    <Group gap="sm" mb="sm">
      <Button
        size="xs"
        variant="default"
        onClick={() => {
          select(isAll ? [] : all);
        }}
      >
        {isAll ? 'Select none' : 'Select all shown'}
      </Button>
      {selected.length > 0 && (
        <Confirm
          action={`${isPending ? 'Cancel' : 'Resend'} ${count}`}
          size="xs"
          isDangerous={isPending}
          consequence={
            isPending
              ? 'No further attempt is made. Of one that is under way, a success still counts.'
              : 'Each gets one more attempt now.'
          }
          perform={perform}
          onDone={() => {
            select([]);
          }}
        />
      )}
    </Group>
  );
}

/** So many requests at once: a page has at most some hundred rows. */
const AT_ONCE = 5;

async function forEach(
  ids: readonly string[],
  act: (id: string) => Promise<unknown>,
): Promise<void> {
  const left = [...ids];
  const work = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) await act(id);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

function columnsWith(
  webhooks: ReadonlyMap<string, FoundWebhook>,
): readonly Column<Schemas['ListedDelivery']>[] {
  return [
    {
      name: 'Message',
      width: 9.5,
      cell: ({ messageId, eventType }) => (
        <Link to="/messages/$messageId" params={{ messageId }}>
          <Cut text={eventType ?? messageId} />
        </Link>
      ),
    },
    {
      name: 'Webhook',
      cell: ({ webhookId }) => (
        <WebhookLink webhookId={webhookId} webhook={webhooks.get(webhookId)} />
      ),
    },
    { name: 'Why', width: 11.5, cell: (delivery) => whyOf(delivery) },
    {
      name: 'Attempts',
      width: WIDTHS.number,
      isNumber: true,
      cell: ({ attemptCount }) => countText(attemptCount),
    },
    {
      name: 'Next attempt',
      width: WIDTHS.time,
      cell: ({ nextAttemptAt }) =>
        nextAttemptAt === null ? <None /> : <When at={nextAttemptAt} />,
    },
    { name: 'Created', width: WIDTHS.time, cell: ({ createdAt }) => <When at={createdAt} /> },
  ];
}

function whyOf({ reason, waiting, lastOutcome }: Schemas['ListedDelivery']): string {
  if (reason !== null) return cancelWords(reason);
  if (waiting === 'hold') return 'on hold';
  if (waiting === 'order') return 'waits for its key';
  if (waiting === 'time') return 'its time has not come';
  return lastOutcome === null ? 'no attempt yet' : `the endpoint ${outcomeWords(lastOutcome)}`;
}
