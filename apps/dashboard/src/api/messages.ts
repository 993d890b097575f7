import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, given, type Schemas } from './client.ts';
import { DUE_MS } from './query-client.ts';
import type { FilterReason } from './words.ts';

const MESSAGES_PER_PAGE = 50;

export interface MessageFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
  eventType?: string | undefined;
  /** One of the tags. */
  tag?: string | undefined;
  externalId?: string | undefined;
  status?: Schemas['MessageStatus'] | undefined;
  /** Of the delivery to the webhook. */
  deliveryStatus?: Schemas['DeliveryStatus'] | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

/** Pages stay as they were loaded: what arrives is shown when one asks for it. */
export const messagesQuery = (filter: MessageFilter) =>
  infiniteQueryOptions({
    queryKey: ['messages', filter],
    staleTime: Infinity,
    gcTime: 60_000,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      answerOf(
        api.GET('/webhook-messages', {
          params: {
            query: { ...given(filter), limit: MESSAGES_PER_PAGE, ...given({ cursor: pageParam }) },
          },
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });

export const messageQuery = (messageId: string) =>
  queryOptions({
    queryKey: ['message', messageId],
    refetchInterval: ({ state }) => (state.data?.status === 'pending' ? DUE_MS : false),
    queryFn: () =>
      dataOf(api.GET('/webhook-messages/{messageId}', { params: { path: { messageId } } })),
  });

/** Returns the newest message of the app that has a payload, as people edit it; null without one. */
export async function newestMessage(appId: string) {
  const query = { appId, limit: 1 };
  const [newest] = await dataOf(api.GET('/webhook-messages', { params: { query } }));
  if (!newest) return null;
  const params = { path: { messageId: newest.id } };
  const found = await dataOf(api.GET('/webhook-messages/{messageId}', { params }));
  if (found.payload === null) return null;
  return {
    payload: found.payload,
    eventType: found.eventType ?? '',
    tags: found.tags.join(', '),
  };
}

/** Erases its payload, and the responses of its deliveries, for good. */
export function erasePayload(messageId: string): Promise<Schemas['ErasedPayload']> {
  const params = { path: { messageId } };
  return dataOf(api.POST('/webhook-messages/{messageId}/erase-payload', { params }));
}

export const deliveriesQuery = (messageId: string) =>
  infiniteQueryOptions({
    queryKey: ['deliveries', messageId],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      answerOf(
        api.GET('/webhook-messages/{messageId}/deliveries', {
          params: { path: { messageId }, query: given({ cursor: pageParam }) },
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => {
      const deliveries = state.data?.pages.flatMap(({ data }) => data) ?? [];
      return deliveries.some((each) => isDue(each)) ? DUE_MS : false;
    },
  });

/** Whether an attempt is under way, or should be: it may have ended before the stream of events began. */
function isDue({ status, nextAttemptAt }: Schemas['Delivery']): boolean {
  if (status !== 'pending') return false;
  return nextAttemptAt === null || Date.parse(nextAttemptAt) <= Date.now();
}

const FIRST_ATTEMPT_MS = 1_000;

/** A delivery. Asked every second until its first attempt was made, which takes less than a second as a rule. */
export const deliveryQuery = (deliveryId: string) =>
  queryOptions({
    queryKey: ['delivery', deliveryId],
    queryFn: () =>
      dataOf(api.GET('/deliveries/{deliveryId}', { params: { path: { deliveryId } } })),
    refetchInterval: ({ state: { data } }) => {
      const isWaiting = data?.status === 'pending' && data.attempts.length === 0;
      return data === undefined || isWaiting ? FIRST_ATTEMPT_MS : false;
    },
  });

export interface UndeliveredFilter {
  status?: 'pending' | 'exhausted' | 'cancelled' | undefined;
  waiting?: 'hold' | 'order' | 'time' | undefined;
  reason?: FilterReason | undefined;
  since?: string | undefined;
  until?: string | undefined;
  appId?: string | undefined;
  webhookId?: string | undefined;
  eventType?: string | undefined;
}

const UNDELIVERED_PER_PAGE = 50;

/** Deliveries that are not delivered, those of the newest message first. */
export const undeliveredQuery = ({ status = 'pending', ...filter }: UndeliveredFilter) =>
  infiniteQueryOptions({
    queryKey: ['undelivered', status, filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      answerOf(
        api.GET('/deliveries', {
          params: {
            query: {
              status,
              limit: UNDELIVERED_PER_PAGE,
              ...given(filter),
              ...given({ cursor: pageParam }),
            },
          },
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });

export function resendDelivery(deliveryId: string): Promise<Schemas['Delivery']> {
  return dataOf(api.POST('/deliveries/{deliveryId}/resend', { params: { path: { deliveryId } } }));
}

export function cancelDelivery(deliveryId: string): Promise<Schemas['Delivery']> {
  return dataOf(api.POST('/deliveries/{deliveryId}/cancel', { params: { path: { deliveryId } } }));
}

export function cancelPending(webhookId: string): Promise<Schemas['PendingCancelled']> {
  const params = { path: { webhookId } };
  return dataOf(api.POST('/webhooks/{webhookId}/cancel-pending', { params }));
}
