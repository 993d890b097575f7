import { SegmentedControl, Text } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../api/client.ts';
import { cancelDelivery, type UndeliveredFilter, undeliveredQuery } from '../api/messages.ts';
import type { FoundWebhook } from '../api/webhooks.ts';
import { cancelWords, outcomeWords } from '../api/words.ts';
import { Confirm } from '../parts/dialog.tsx';
import { AppSelect, EventTypeInput, FilterBar, WebhookSelect } from '../parts/filters.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { countText } from '../parts/time-words.ts';
import { Cut, None, When } from '../parts/values.tsx';
import { UNDELIVERED } from '../search.ts';
import { useRights, useSession } from '../session/session-context.ts';
import { useWebhooks, WebhookLink } from './names.tsx';
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
            void navigate({ search: (before) => ({ ...before, status: value }), replace: true })
          }
        />
      }
    >
      <Filters search={search} status={status} />
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
  const { appId, webhookId, eventType } = search;
  const isFiltered = [appId, webhookId, eventType].some((each) => each !== undefined);
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
    </FilterBar>
  );
}

interface DeliveriesProps {
  deliveries: Schemas['ListedDelivery'][];
  /** Nothing follows. */
  isAll: boolean;
  status: DeliveryStatus;
}

function Deliveries({ deliveries, isAll, status }: DeliveriesProps) {
  const { canControl } = useRights();
  const webhooks = useWebhooks(deliveries.map(({ webhookId }) => webhookId));
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
  const isCancellable = canControl && status === 'pending';
  const columns = [...columnsWith(webhooks), ...(isCancellable ? [CANCEL] : [])];
  return (
    <Rows
      caption={`Deliveries that are ${status}`}
      columns={columns}
      rows={deliveries}
      keyOf={({ id }) => id}
    />
  );
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
  if (waiting === 'time') return 'its time has not come';
  return lastOutcome === null ? 'no attempt yet' : `the endpoint ${outcomeWords(lastOutcome)}`;
}

const CANCEL: Column<Schemas['ListedDelivery']> = {
  name: 'Cancel',
  width: 6.5,
  cell: (delivery) => <CancelOne delivery={delivery} />,
};

/** Ends one pending delivery, after a question. */
function CancelOne({ delivery }: { delivery: Schemas['ListedDelivery'] }) {
  const client = useQueryClient();
  const { id, status } = delivery;
  if (status !== 'pending') return null;
  return (
    <Confirm
      action="Cancel"
      size="xs"
      about={{ kind: 'delivery', name: id }}
      consequence="No further attempt is made. If one is under way, its success still counts."
      perform={() => cancelDelivery(id)}
      onDone={() => void client.invalidateQueries({ queryKey: ['undelivered'] })}
    />
  );
}
