import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, given, type Schemas } from './client.ts';

interface ResendFilter {
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

/** The messages that a webhook may have missed. */
export interface MissedSpan {
  /** ISO 8601; null while none is chosen. */
  since: string | null;
  /** Null for now. */
  until: string | null;
  /** Empty for all that the webhook receives. */
  eventTypes: readonly string[];
}

/** How many messages a webhook has missed in a time. `refetch` begins it: the gateway may read 100,000 messages. */
export const missedQuery = (webhookId: string, { since, until, eventTypes }: MissedSpan) =>
  queryOptions({
    queryKey: ['missed', webhookId, since, until, eventTypes],
    enabled: false,
    queryFn: async (): Promise<number> => {
      const chosen = { until: until ?? undefined, eventTypes: eventTypes.join() || undefined };
      const query = { since: since ?? '', ...given(chosen) };
      const params = { path: { webhookId }, query };
      const counted = await dataOf(
        api.GET('/webhooks/{webhookId}/replay-missing/estimate', { params }),
      );
      return counted.total;
    },
  });

export function startReplay(
  webhookId: string,
  { since, until, eventTypes }: MissedSpan,
): Promise<Schemas['Resend']> {
  const params = { path: { webhookId } };
  const body = {
    since: since ?? '',
    ...(until !== null && { until }),
    ...(eventTypes.length > 0 && { eventTypes: [...eventTypes] }),
  };
  return dataOf(api.POST('/webhooks/{webhookId}/replay-missing', { params, body }));
}

export const resendQuery = (resendId: string) =>
  queryOptions({
    queryKey: ['resend', resendId],
    queryFn: () => dataOf(api.GET('/resends/{resendId}', { params: { path: { resendId } } })),
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? 1_000 : false),
  });

const MOST = 100;
const WEEK_MS = 604_800_000;

/** How many deliveries to a webhook a resend since a time would send again. */
export const failedSinceQuery = (webhookId: string, since: string | null) =>
  queryOptions({
    queryKey: ['failed-since', webhookId, since],
    enabled: since !== null,
    queryFn: async (): Promise<number> => {
      const params = { path: { webhookId }, query: { since: since ?? '' } };
      const counted = await dataOf(
        api.GET('/webhooks/{webhookId}/resend-failed/estimate', { params }),
      );
      return counted.total;
    },
  });

/** The gateway counts no further. */
const MOST_COUNTED = 100_000;

/** Writes how many deliveries failed. */
export function failedText(count: number): string {
  if (count >= MOST_COUNTED) return `${MOST_COUNTED} deliveries or more`;
  return `${count} ${count === 1 ? 'delivery' : 'deliveries'}`;
}

/** When the oldest message of the last week was created whose delivery to a webhook failed; null without one. */
export const firstFailureQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['first-failure', webhookId],
    staleTime: 30_000,
    queryFn: async (): Promise<string | null> => {
      const since = new Date(Date.now() - WEEK_MS).toISOString();
      const query = { webhookId, status: 'exhausted', since, limit: MOST } as const;
      const { data, nextCursor } = await answerOf(
        api.GET('/webhook-messages', { params: { query } }),
      );
      // With more than one page the beginning is not known, and a wrong one would leave deliveries out.
      return nextCursor ? null : (data.at(-1)?.createdAt ?? null);
    },
  });
