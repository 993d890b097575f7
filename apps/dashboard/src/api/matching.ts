import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, given, type Schemas } from './client.ts';
import type { UndeliveredFilter } from './messages.ts';

/** What is done with all deliveries that the filters of the list select. */

function filterOf({ status = 'pending', ...filter }: UndeliveredFilter) {
  return { status, ...given(filter) };
}

/** How many deliveries, to how many webhooks, that would be now. */
export const planQuery = (what: 'cancel' | 'resend', filter: UndeliveredFilter) =>
  queryOptions({
    queryKey: ['plan', what, filter],
    // A question shows how many there are when it is asked.
    gcTime: 0,
    queryFn: (): Promise<Schemas['DeliveryPlan']> => {
      const params = { query: filterOf(filter) };
      return what === 'cancel'
        ? dataOf(api.GET('/deliveries/cancel/estimate', { params }))
        : dataOf(api.GET('/deliveries/resend/estimate', { params }));
    },
  });

export function startCancellation(filter: UndeliveredFilter): Promise<Schemas['Cancellation']> {
  return dataOf(api.POST('/deliveries/cancel', { body: filterOf(filter) }));
}

export function resendMatching(filter: UndeliveredFilter): Promise<Schemas['Resend']> {
  return dataOf(api.POST('/deliveries/resend', { body: filterOf(filter) }));
}

export const cancellationQuery = (cancellationId: string) =>
  queryOptions({
    queryKey: ['cancellation', cancellationId],
    queryFn: () =>
      dataOf(api.GET('/cancellations/{cancellationId}', { params: { path: { cancellationId } } })),
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? 1_000 : false),
  });

export const cancellationsQuery = (filter: {
  appId?: string | undefined;
  webhookId?: string | undefined;
}) =>
  infiniteQueryOptions({
    queryKey: ['cancellations', filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      answerOf(
        api.GET('/cancellations', { params: { query: given({ ...filter, cursor: pageParam }) } }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => {
      const all = state.data?.pages.flatMap(({ data }) => data) ?? [];
      return all.some(({ status }) => status === 'running') ? 2_000 : false;
    },
  });
