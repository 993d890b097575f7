import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useQuery,
} from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, dataOf, given, type Schemas } from './client.ts';
import { withoutMark } from './find.ts';
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

export type FoundWebhook = Schemas['FoundWebhook'];

const FOUND_FRESH_MS = 30_000;
const PER_PAGE = 20;

interface WebhookFilter {
  /** Part of the URL, the name or an event type, or the whole id or uid. */
  text?: string | undefined;
  appId?: string | undefined;
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
export const webhooksOfQuery = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ['webhooks', 'of', ids],
    staleTime: FOUND_FRESH_MS,
    enabled: ids.length > 0,
    queryFn: async (): Promise<ReadonlyMap<string, FoundWebhook | null>> => {
      const query = { ids: ids.join(','), limit: 100 };
      const { data } = await answerOf(api.GET('/find-webhooks', { params: { query } }));
      const found = new Map(data.map((webhook) => [webhook.id, webhook]));
      return new Map(ids.map((id) => [id, found.get(id) ?? null]));
    },
  });

const PER_REQUEST = 100;
const NONE: ReadonlyMap<string, FoundWebhook | null> = new Map();

/**
 * The URLs of the webhooks of these ids, by id, without those that are not known yet or were deleted. What is known
 * stays while others are asked for.
 */
export function useWebhookUrls(ids: readonly string[]): ReadonlyMap<string, string> {
  const [known, setKnown] = useState(NONE);
  const unknown = [...new Set(ids)].filter((id) => !known.has(id)).slice(0, PER_REQUEST);
  const { data } = useQuery(webhooksOfQuery(unknown));
  if (data !== undefined && [...data.keys()].some((id) => !known.has(id))) {
    setKnown(new Map([...known, ...data]));
  }
  return new Map([...known].flatMap(([id, found]) => (found === null ? [] : [[id, found.url]])));
}
