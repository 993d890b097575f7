import { SegmentedControl, Text } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../api/client.ts';
import { cancelDelivery, type UndeliveredFilter, undeliveredQuery } from '../api/messages.ts';
import { useWebhookUrls } from '../api/webhooks.ts';
import { cancelWords, outcomeWords } from '../api/words.ts';
import { Confirm } from '../parts/dialog.tsx';
import { AppSelect, EventTypeInput, WebhookSelect } from '../parts/filters.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../parts/states.tsx';
import { type Column, Rows } from '../parts/table.tsx';
import { countText } from '../parts/time-words.ts';
import { When } from '../parts/values.tsx';
import { UNDELIVERED } from '../search.ts';
import { useRights, useSession } from '../session/session-context.ts';
import { CancelPending } from './webhooks/recover.tsx';

const route = getRouteApi('/deliveries');

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
      <Filters search={search} />
      {canControl && webhookId !== undefined && status === 'pending' && (
        <CancelPending webhookId={webhookId} />
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

function Filters({ search }: { search: UndeliveredFilter }) {
  const navigate = route.useNavigate();
  const { kind, key } = useSession();
  const { appId, webhookId = '', eventType } = search;
  const set =
    (name: keyof UndeliveredFilter) =>
    (value: string): void => {
      void navigate({
        search: (before) => ({ ...before, [name]: value || undefined }),
        replace: true,
      });
    };
  return (
    <>
      {kind !== 'portal' && key.appId === null && (
        <AppSelect value={appId ?? ''} noneLabel="All apps" onChange={set('appId')} />
      )}
      <WebhookSelect value={webhookId} appId={appId} onChange={set('webhookId')} />
      <EventTypeInput value={eventType} set={set('eventType')} />
    </>
  );
}

interface DeliveriesProps {
  deliveries: Schemas['ListedDelivery'][];
  /** Nothing follows. */
  isAll: boolean;
  status: Schemas['DeliveryStatus'];
}

function Deliveries({ deliveries, isAll, status }: DeliveriesProps) {
  const { canControl } = useRights();
  const urls = useWebhookUrls(deliveries.map(({ webhookId }) => webhookId));
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
  const columns = [...columnsWith(urls), ...(isCancellable ? [CANCEL] : [])];
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
  urls: ReadonlyMap<string, string>,
): readonly Column<Schemas['ListedDelivery']>[] {
  return [
    {
      name: 'Message',
      cell: ({ messageId, eventType }) => (
        <Link to="/messages/$messageId" params={{ messageId }}>
          {eventType ?? messageId}
        </Link>
      ),
    },
    {
      name: 'Webhook',
      cell: ({ webhookId }) => (
        <Link to="/webhooks/$webhookId" params={{ webhookId }}>
          {urls.get(webhookId) ?? webhookId}
        </Link>
      ),
    },
    { name: 'Why', cell: (delivery) => whyOf(delivery) },
    { name: 'Attempts', isNumber: true, cell: ({ attemptCount }) => countText(attemptCount) },
    {
      name: 'Next attempt',
      cell: ({ nextAttemptAt }) => nextAttemptAt && <When at={nextAttemptAt} />,
    },
    { name: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
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
      about={{ kind: 'delivery', name: id }}
      consequence="No further attempt is made. If one is under way, its success still counts."
      perform={() => cancelDelivery(id)}
      onDone={() => void client.invalidateQueries({ queryKey: ['undelivered'] })}
    />
  );
}
