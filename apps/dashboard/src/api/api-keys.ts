import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, dataOf, given } from './client.ts';
import { FRESH_MS } from './query-client.ts';

/** The keys that a person made, or all of them. */
export const apiKeysQuery = (createdBy?: string) =>
  queryOptions({
    queryKey: ['api-keys', createdBy ?? null],
    staleTime: FRESH_MS,
    queryFn: () => dataOf(api.GET('/api-keys', { params: { query: given({ createdBy }) } })),
  });

/** Returns what an API key is called; undefined for one that was revoked, and while it is not known. */
export function useKeyName(keyId: string): string | undefined {
  const { data } = useQuery({ ...apiKeysQuery(), retry: false });
  return data?.find(({ id }) => id === keyId)?.name;
}
