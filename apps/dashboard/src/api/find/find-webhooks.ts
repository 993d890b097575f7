import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../client.ts';
import { given } from '../queries.ts';
import { withoutMark } from './find.ts';

export type FoundWebhook = Schemas['FoundWebhook'];

const FRESH_MS = 30_000;
const PER_PAGE = 20;

export interface WebhookFilter {
  /** Part of the URL, the name or an event type, or the whole id or uid. */
  text?: string | undefined;
  appId?: string | undefined;
}

/** Page by page, newest first. */
export const findWebhooksQuery = (filter: WebhookFilter) =>
  infiniteQueryOptions({
    queryKey: ['webhooks', 'found', filter],
    staleTime: FRESH_MS,
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
    staleTime: FRESH_MS,
    enabled: ids.length > 0,
    queryFn: async (): Promise<ReadonlyMap<string, FoundWebhook | null>> => {
      const query = { ids: ids.join(','), limit: 100 };
      const { data } = await answerOf(api.GET('/find-webhooks', { params: { query } }));
      const found = new Map(data.map((webhook) => [webhook.id, webhook]));
      return new Map(ids.map((id) => [id, found.get(id) ?? null]));
    },
  });
