import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../client.ts';

const FRESH_MS = 30_000;

/** The webhooks of at most 20 apps, and their attempts of the last 24 hours. */
export const appCountsQuery = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ['app-counts', ids],
    staleTime: FRESH_MS,
    enabled: ids.length > 0,
    queryFn: () => {
      const query = { ids: ids.join(',') };
      return dataOf(api.GET('/app-counts', { params: { query } }));
    },
  });
