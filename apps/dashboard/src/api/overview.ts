import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, given } from './client.ts';
import type { Range } from './words.ts';

/** How often roll-ups are worth asking again: they are written every few seconds. */
const REFRESH_MS = 30_000;

export const overviewQuery = (range: Range) =>
  queryOptions({
    queryKey: ['overview', range],
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET('/overview', { params: { query: { range } } })),
  });

export const RANGE_MS: Record<Range, number> = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
  '30d': 2_592_000_000,
};

export const failuresQuery = (range: Range, appId: string | undefined) =>
  queryOptions({
    queryKey: ['failures', range, appId ?? 'all'],
    refetchInterval: REFRESH_MS,
    queryFn: () => {
      const since = new Date(Date.now() - RANGE_MS[range]).toISOString();
      return dataOf(api.GET('/failures', { params: { query: { since, ...given({ appId }) } } }));
    },
  });

/** A probe is made every half a minute. */
const CIRCUITS_MS = 10_000;

export const circuitsQuery = (appId?: string) =>
  queryOptions({
    queryKey: ['circuits', appId ?? 'all'],
    refetchInterval: CIRCUITS_MS,
    queryFn: () => dataOf(api.GET('/circuits', { params: { query: given({ appId }) } })),
  });

/** The hours of the last day. */
export const statsQuery = (owner: { webhookId?: string; appId?: string }) =>
  queryOptions({
    queryKey: ['stats', owner],
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET('/stats', { params: { query: { step: 'hour', ...owner } } })),
  });
