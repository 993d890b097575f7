import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, type Schemas } from './client.ts';
import { given } from './queries.ts';

export interface ResendFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
}

const RUNNING_MS = 2_000;

export const resendsQuery = (filter: ResendFilter) =>
  infiniteQueryOptions({
    queryKey: ['resends', filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      answerOf(
        api.GET('/resends', {
          params: { query: given({ ...filter, cursor: pageParam }) },
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => {
      const resends = state.data?.pages.flatMap(({ data }) => data) ?? [];
      return resends.some(({ status }) => status === 'running') ? RUNNING_MS : false;
    },
  });

export function abortResend(resendId: string): Promise<Schemas['Resend']> {
  return dataOf(api.POST('/resends/{resendId}/abort', { params: { path: { resendId } } }));
}

/** How many messages a webhook has missed since a time. `refetch` begins it: the gateway may read 100,000 messages. */
export const missedSinceQuery = (webhookId: string, since: string | null) =>
  queryOptions({
    queryKey: ['missed-since', webhookId, since],
    enabled: false,
    queryFn: async (): Promise<number> => {
      const params = { path: { webhookId }, query: { since: since ?? '' } };
      const counted = await dataOf(
        api.GET('/webhooks/{webhookId}/replay-missing/estimate', { params }),
      );
      return counted.total;
    },
  });

export function startReplay(webhookId: string, since: string): Promise<Schemas['Resend']> {
  const params = { path: { webhookId } };
  return dataOf(api.POST('/webhooks/{webhookId}/replay-missing', { params, body: { since } }));
}
