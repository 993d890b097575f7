import { infiniteQueryOptions } from '@tanstack/react-query';
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
        api.GET('/api/v1/resends', {
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
  return dataOf(api.POST('/api/v1/resends/{resendId}/abort', { params: { path: { resendId } } }));
}
