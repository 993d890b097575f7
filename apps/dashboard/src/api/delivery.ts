import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from './client.ts';

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
