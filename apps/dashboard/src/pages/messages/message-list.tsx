import { Button, Text } from '@mantine/core';
import {
  useInfiniteQuery,
  useQuery,
  useQueryClient,
  type InfiniteData,
} from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client.ts';
import { messagesQuery, webhooksQuery, type MessageFilter } from '../../api/queries.ts';
import { QueryView, ShowMore } from '../../parts/query-view.tsx';
import { Rows, type Column } from '../../parts/rows.tsx';
import { Empty } from '../../parts/states.tsx';
import { DeliveryStatus } from '../../parts/status.tsx';
import { When } from '../../parts/time/when.tsx';
import { useArrivals } from './use-arrivals.ts';
import styles from './messages.module.css';

interface MessageListProps {
  filter: MessageFilter;
  /** Opens a message beside the list; a link to its page when left out. */
  open?: (messageId: string) => void;
}

/** Messages, newest first. What arrives is announced above the list and moves nothing until it is asked for. */
export function MessageList({ filter, open }: MessageListProps) {
  const client = useQueryClient();
  const options = messagesQuery(filter);
  const query = useInfiniteQuery(options);
  const rows = query.data?.pages.flatMap(({ data }) => data) ?? [];
  const arrivals = useArrivals(filter, new Set(rows.map(({ id }) => id)));
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
        {() => <MessageRows rows={rows} open={open} isMore={query.hasNextPage} filter={filter} />}
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
  rows: Schemas['ListedMessage'][];
  open: MessageListProps['open'];
  isMore: boolean;
  filter: MessageFilter;
}

function MessageRows({ rows, open, isMore, filter }: MessageRowsProps) {
  const { data: webhooks = [] } = useQuery(webhooksQuery());
  const urls = new Map(webhooks.map(({ id, url }) => [id, url]));
  if (rows.length > 0) {
    const columns = columnsOf(urls, open);
    return <Rows caption="Messages" columns={columns} rows={rows} keyOf={({ id }) => id} />;
  }
  if (isMore) return <Text>Nothing matches in the newest messages. Older ones may match.</Text>;
  const isFiltered = Object.values(filter).some((value) => value !== undefined && value !== '');
  return (
    <Empty title={isFiltered ? 'No message matches' : 'There is no message yet'}>
      <Text>
        {isFiltered
          ? 'Messages are kept for 30 days, unless the operator set another time. Loosen a filter to see more.'
          : 'Send one with the API, or from this page. It shows up here once it is accepted.'}
      </Text>
    </Empty>
  );
}

function columnsOf(
  urls: ReadonlyMap<string, string>,
  open: MessageListProps['open'],
): Column<Schemas['ListedMessage']>[] {
  return [
    { name: 'Message', cell: ({ id }) => <MessageLink messageId={id} open={open} /> },
    { name: 'Status', cell: ({ status }) => <DeliveryStatus status={status} /> },
    { name: 'Event type', cell: ({ eventType }) => eventType ?? 'none' },
    { name: 'To', cell: ({ deliveries }) => targetsText(deliveries, urls) },
    {
      name: 'Attempts',
      isNumber: true,
      cell: ({ deliveries }) => deliveries.reduce((sum, { attemptCount }) => sum + attemptCount, 0),
    },
    { name: 'Accepted', cell: ({ createdAt }) => <When at={createdAt} /> },
  ];
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
      {messageId}
    </Link>
  );
}

const SHOWN_TARGETS = 1;

function targetsText(
  deliveries: Schemas['ListedMessage']['deliveries'],
  urls: ReadonlyMap<string, string>,
): ReactNode {
  if (deliveries.length === 0) return 'no webhook selected it';
  const shown = deliveries
    .slice(0, SHOWN_TARGETS)
    .map(({ webhookId }) => urls.get(webhookId) ?? webhookId);
  const more = deliveries.length - SHOWN_TARGETS;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}
