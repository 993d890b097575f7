import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, given, type Schemas } from './client.ts';
import { byIdsQuery, withoutMark } from './find.ts';
import { DUE_MS, FRESH_MS } from './query-client.ts';

const WITHOUT_SECRETS = { secrets: false } as const;

export const webhookQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhook', webhookId],
    staleTime: FRESH_MS,
    // What waits is released in the background.
    refetchInterval: ({ state: { data } }) => ((data?.waiting ?? 0) > 0 ? DUE_MS : false),
    queryFn: () =>
      dataOf(
        api.GET('/webhooks/{webhookId}', {
          params: { path: { webhookId }, query: WITHOUT_SECRETS },
        }),
      ),
  });

/** Forgotten once it is hidden. */
export const secretQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhook', webhookId, 'secret'],
    gcTime: 0,
    queryFn: async () => {
      const params = { path: { webhookId } };
      return (await dataOf(api.GET('/webhooks/{webhookId}', { params }))).secret;
    },
  });

export const healthQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['health', webhookId],
    staleTime: FRESH_MS,
    queryFn: () =>
      dataOf(api.GET('/webhooks/{webhookId}/health', { params: { path: { webhookId } } })),
  });

const KEYS_PER_PAGE = 20;

/** The ordering keys of a webhook whose deliveries wait, blocked ones first. */
export const orderingKeysQuery = (webhookId: string) =>
  infiniteQueryOptions({
    queryKey: ['orderingKeys', webhookId],
    staleTime: FRESH_MS,
    refetchInterval: DUE_MS,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => {
      const query = { limit: KEYS_PER_PAGE, ...given({ cursor: pageParam }) };
      const params = { path: { webhookId }, query };
      return answerOf(api.GET('/webhooks/{webhookId}/ordering-keys', { params }));
    },
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });

export function skipOrderingKey(
  webhookId: string,
  body: Schemas['SkipOrderingKey'],
): Promise<Schemas['SkippedOrderingKey']> {
  const params = { path: { webhookId } };
  return dataOf(api.POST('/webhooks/{webhookId}/ordering-keys/skip', { params, body }));
}

export function testFilter(body: Schemas['TestFilter']): Promise<Schemas['TestedFilter']> {
  return dataOf(api.POST('/test-filter', { body }));
}

/** With the example of an event type, or '' for the usual test message. */
export function sendTest(webhookId: string, eventType: string) {
  const call = { params: { path: { webhookId } }, body: given({ eventType }) };
  return dataOf(api.POST('/webhooks/{webhookId}/test', call));
}

export type FoundWebhook = Schemas['FoundWebhook'];

const FOUND_FRESH_MS = 30_000;
const PER_PAGE = 20;

interface WebhookFilter {
  /** Part of the URL, the name or an event type, or the whole id or uid. */
  text?: string | undefined;
  appId?: string | undefined;
  projectId?: string | undefined;
  /** One that they select, in whatever way. */
  eventType?: string | undefined;
}

/** Page by page, newest first. */
export const findWebhooksQuery = (filter: WebhookFilter) =>
  infiniteQueryOptions({
    queryKey: ['webhooks', 'found', filter],
    staleTime: FOUND_FRESH_MS,
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => {
      const text = withoutMark(filter.text ?? '');
      const query = {
        ...given({ ...filter, text }),
        limit: PER_PAGE,
        ...given({ cursor: pageParam }),
      };
      return answerOf(api.GET('/find-webhooks', { params: { query } }));
    },
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });

/** The webhooks of at most 100 ids, by id; null for those that do not exist. */
export const webhooksOfQuery = (webhookIds: readonly string[]) =>
  byIdsQuery<FoundWebhook>('webhooks', webhookIds, (query) =>
    dataOf(api.GET('/find-webhooks', { params: { query } })),
  );
