import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from './client.ts';
import { FRESH_MS } from './query-client.ts';

export const apiKeysQuery = queryOptions({
  queryKey: ['api-keys'],
  staleTime: FRESH_MS,
  queryFn: () => dataOf(api.GET('/api-keys', { params: { query: {} } })),
});
