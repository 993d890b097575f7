import { Button, Text } from '@mantine/core';
import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { type MessageFilter, messagesQuery } from '../../api/messages.ts';
import type { FoundWebhook } from '../../api/webhooks.ts';
import { webhookWords } from '../../api/words.ts';
import { Empty, QueryView, ShowMore } from '../../parts/states.tsx';
import { DeliveryStatus } from '../../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { Cut, None, When } from '../../parts/values.tsx';
import { useWebhooks } from '../names.tsx';
import { useArrivals, useRowUpdates } from './live-rows.ts';
import styles from './messages.module.css';

type ListedMessage = Schemas['ListedMessage'];

interface MessageListProps {
  filter: MessageFilter;
  /** Opens a message beside the list; a link to its page when left out. */
  open?: (messageId: string) => void;
  /** The webhook whose deliveries are shown, in place of all those of the messages. */
  deliveriesTo?: string;
}

/**
 * Messages, newest first. The state of those that are shown follows their attempts. What arrives is announced above
 * the list and moves nothing until it is asked for.
 */
export function MessageList({ filter, open, deliveriesTo }: MessageListProps) {
  const client = useQueryClient();
  const options = messagesQuery(filter);
  const query = useInfiniteQuery(options);
  const rows = query.data?.pages.flatMap(({ data }) => data) ?? [];
  const arrivals = useArrivals(filter, new Set(rows.map(({ id }) => id)));
  useRowUpdates(options.queryKey, rows);
  const showNew = (): void => {
    arrivals.clear();
    // Only the first page is asked again: the others would move.
    client.setQueryData(options.queryKey, firstPageOf);
    void query.refetch();
  };
  return (
    <>
      {arrivals.text !== null && (
        <Button className={styles.fresh} variant="light" size="xs" onClick={showNew}>
          {arrivals.text}
        </Button>
      )}
      <QueryView query={query} what="the messages">
        {() => (
          <MessageRows
            rows={rows}
            isMore={query.hasNextPage}
            filter={filter}
            open={open}
            deliveriesTo={deliveriesTo}
          />
        )}
      </QueryView>
      <ShowMore query={query}>Show older messages</ShowMore>
    </>
  );
}

function firstPageOf<Page, Param>(
  data: InfiniteData<Page, Param> | undefined,
): InfiniteData<Page, Param> | undefined {
  return data && { pages: data.pages.slice(0, 1), pageParams: data.pageParams.slice(0, 1) };
}

interface MessageRowsProps {
  rows: ListedMessage[];
  isMore: boolean;
  filter: MessageFilter;
  open: MessageListProps['open'];
  deliveriesTo: string | undefined;
}

function MessageRows({ rows, isMore, filter, open, deliveriesTo }: MessageRowsProps) {
  const first = deliveriesTo ?? filter.webhookId;
  const webhooks = useWebhooks(deliveriesTo === undefined ? shownTargets(rows, first) : []);
  if (rows.length > 0) {
    const columns =
      deliveriesTo === undefined
        ? messageColumns({ webhooks, open, first })
        : deliveryColumns(open, deliveriesTo);
    return <Rows caption="Messages" columns={columns} rows={rows} keyOf={({ id }) => id} />;
  }
  if (isMore) return <Text>Nothing matches in the newest messages. Older ones may match.</Text>;
  const isFiltered = Object.values(filter).some((value) => value !== undefined && value !== '');
  return (
    <Empty title={isFiltered ? 'No message matches' : 'There is no message yet'}>
      <Text>
        {isFiltered
          ? 'Messages are kept for 30 days, unless another time is set. Loosen a filter to see more.'
          : 'Send one with the API, or from this page. It shows up here once it is accepted.'}
      </Text>
    </Empty>
  );
}

/** Of each message one target, which is named. */
function shownTargets(rows: readonly ListedMessage[], first: string | undefined): string[] {
  return rows.flatMap(({ deliveries }) => targetShown(deliveries, first)?.webhookId ?? []);
}

interface ShownBy {
  webhooks: ReadonlyMap<string, FoundWebhook>;
  open: MessageListProps['open'];
  /** The webhook that is named first. */
  first: string | undefined;
}

function messageColumns({ webhooks, open, first }: ShownBy): Column<ListedMessage>[] {
  return [
    messageColumn(open),
    {
      name: 'Status',
      width: WIDTHS.status,
      cell: ({ status }) => <DeliveryStatus status={status} />,
    },
    EVENT_TYPE,
    {
      name: 'To',
      cell: ({ deliveries }) => (
        <Targets deliveries={deliveries} webhooks={webhooks} first={first} />
      ),
    },
    {
      name: 'Attempts',
      width: WIDTHS.number,
      isNumber: true,
      cell: ({ deliveries }) => deliveries.reduce((sum, { attemptCount }) => sum + attemptCount, 0),
    },
    ACCEPTED,
  ];
}

function deliveryColumns(
  open: MessageListProps['open'],
  webhookId: string,
): Column<ListedMessage>[] {
  const own = ({ deliveries }: ListedMessage) =>
    deliveries.find((delivery) => delivery.webhookId === webhookId);
  return [
    messageColumn(open),
    {
      name: 'Delivery',
      width: WIDTHS.status,
      cell: (message) => <DeliveryStatus status={own(message)?.status ?? message.status} />,
    },
    EVENT_TYPE,
    {
      name: 'Attempts',
      width: WIDTHS.number,
      isNumber: true,
      cell: (message) => own(message)?.attemptCount ?? 0,
    },
    ACCEPTED,
  ];
}

function messageColumn(open: MessageListProps['open']): Column<ListedMessage> {
  return {
    name: 'Message',
    width: WIDTHS.id,
    cell: (message) => <MessageCell message={message} open={open} />,
  };
}

const EVENT_TYPE: Column<ListedMessage> = {
  name: 'Event type',
  width: 10,
  cell: ({ eventType }) => (eventType === null ? <None /> : <Cut text={eventType} />),
};

const ACCEPTED: Column<ListedMessage> = {
  name: 'Accepted',
  width: WIDTHS.time,
  cell: ({ createdAt }) => <When at={createdAt} />,
};

function MessageCell({ message, open }: { message: ListedMessage } & Pick<ShownBy, 'open'>) {
  const { id, externalId, tags } = message;
  const own = [...(externalId === null ? [] : [externalId]), ...tags].join(' · ');
  return (
    <>
      <MessageLink messageId={id} open={open} />
      {own !== '' && <Cut text={own} look="small" />}
    </>
  );
}

/** A click opens the side panel; a middle click, or the menu of the browser, the page. */
function MessageLink({ messageId, open }: { messageId: string; open: MessageListProps['open'] }) {
  return (
    <Link
      to="/messages/$messageId"
      params={{ messageId }}
      onClick={(event) => {
        if (open === undefined || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        open(messageId);
      }}
    >
      <Cut text={messageId} look="id" />
    </Link>
  );
}

type Deliveries = ListedMessage['deliveries'];

function targetShown(
  deliveries: Deliveries,
  first: string | undefined,
): Deliveries[number] | undefined {
  return deliveries.find(({ webhookId }) => webhookId === first) ?? deliveries[0];
}

interface TargetsProps extends Pick<ShownBy, 'webhooks' | 'first'> {
  deliveries: Deliveries;
}

function Targets({ deliveries, webhooks, first }: TargetsProps) {
  const shown = targetShown(deliveries, first);
  if (shown === undefined) return 'no webhook selected it';
  const webhook = webhooks.get(shown.webhookId);
  const { name, address } = webhook
    ? webhookWords(webhook)
    : { name: shown.webhookId, address: null };
  const more = deliveries.length - 1;
  return (
    <>
      <Cut text={more > 0 ? `${name} and ${more} more` : name} />
      {address !== null && <Cut text={address} look="small" />}
    </>
  );
}
