import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from './client.ts';
import { given } from './queries.ts';
import type { Range } from '../search.ts';
import type { FailureGroup, Overview } from './schema-next.ts';

/** How often roll-ups are worth asking again: they are written every few seconds. */
const REFRESH_MS = 30_000;

export const overviewQuery = (filter: { range: Range; appId?: string; webhookId?: string }) =>
  queryOptions({
    queryKey: ['overview', filter],
    refetchInterval: REFRESH_MS,
    queryFn: (): Promise<Overview> =>
      dataOf(api.GET('/api/v1/overview' as never, { params: { query: filter } } as never) as never),
  });

export const RANGE_MS: Record<Range, number> = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
  '30d': 2_592_000_000,
};

export const failuresQuery = (filter: { range: Range; appId?: string }) =>
  queryOptions({
    queryKey: ['failures', filter],
    refetchInterval: REFRESH_MS,
    queryFn: (): Promise<FailureGroup[]> => {
      const since = new Date(Date.now() - RANGE_MS[filter.range]).toISOString();
      const query = given({ since, appId: filter.appId });
      return dataOf(api.GET('/api/v1/failures' as never, { params: { query } } as never) as never);
    },
  });

/** The hours of the last day. */
export const statsQuery = (owner: { webhookId?: string; appId?: string }) =>
  queryOptions({
    queryKey: ['stats', owner],
    refetchInterval: REFRESH_MS,
    queryFn: () =>
      dataOf(api.GET('/api/v1/stats', { params: { query: { step: 'hour', ...owner } } })),
  });
