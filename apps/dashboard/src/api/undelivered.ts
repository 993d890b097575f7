import { infiniteQueryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, type Schemas } from './client.ts';
import { given } from './queries.ts';

export interface UndeliveredFilter {
  status?: 'pending' | 'exhausted' | 'cancelled' | undefined;
  appId?: string | undefined;
  webhookId?: string | undefined;
  eventType?: string | undefined;
}

const PER_PAGE = 50;

/** Deliveries that are not delivered, those of the newest message first. */
export const undeliveredQuery = ({ status = 'pending', ...filter }: UndeliveredFilter) =>
  infiniteQueryOptions({
    queryKey: ['undelivered', status, filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      answerOf(
        api.GET('/deliveries', {
          params: {
            query: { status, limit: PER_PAGE, ...given(filter), ...given({ cursor: pageParam }) },
          },
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });

export function cancelDelivery(deliveryId: string): Promise<Schemas['Delivery']> {
  return dataOf(api.POST('/deliveries/{deliveryId}/cancel', { params: { path: { deliveryId } } }));
}

export function cancelPending(webhookId: string): Promise<Schemas['PendingCancelled']> {
  const params = { path: { webhookId } };
  return dataOf(api.POST('/webhooks/{webhookId}/cancel-pending', { params }));
}
