import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, type Schemas } from './client.ts';

/** While one is on a page, its data are at most this old when it is opened again. */
const FRESH_MS = 5_000;
/** How often a message is asked for while an attempt of it is due. */
const DUE_MS = 3_000;
const MOST_PROJECTS = 1_000;
const APPS_PER_PAGE = 20;
const MESSAGES_PER_PAGE = 50;
const WITHOUT_SECRETS = { secrets: false } as const;

export const projectsQuery = queryOptions({
  queryKey: ['projects'],
  staleTime: FRESH_MS,
  queryFn: () => dataOf(api.GET('/projects', { params: { query: { limit: MOST_PROJECTS } } })),
});

/** Page by page, oldest first. */
export const appsQuery = (projectId: string) =>
  infiniteQueryOptions({
    queryKey: ['apps', projectId],
    staleTime: FRESH_MS,
    initialPageParam: 0,
    queryFn: ({ pageParam: skip }) => {
      const query = { projectId, limit: APPS_PER_PAGE, skip };
      return dataOf(api.GET('/apps', { params: { query } }));
    },
    getNextPageParam: (last, _pages, skip) => nextSkip(last.length, APPS_PER_PAGE, skip),
  });

/** The API does not say whether there are more: a full page may be the last one. */
export function nextSkip(read: number, limit: number, skip: number): number | undefined {
  return read < limit ? undefined : skip + limit;
}

export const appQuery = (appId: string) =>
  queryOptions({
    queryKey: ['app', appId],
    staleTime: FRESH_MS,
    queryFn: () => dataOf(api.GET('/apps/{appId}', { params: { path: { appId } } })),
  });

export const webhookQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhook', webhookId],
    staleTime: FRESH_MS,
    // What waits is released in the background.
    refetchInterval: ({ state: { data } }) => ((data?.waiting ?? 0) > 0 ? DUE_MS : false),
    queryFn: () =>
      dataOf(
        api.GET('/webhooks/{webhookId}', {
          params: { path: { webhookId }, query: WITHOUT_SECRETS },
        }),
      ),
  });

/** Forgotten once it is hidden. */
export const secretQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhook', webhookId, 'secret'],
    gcTime: 0,
    queryFn: async () => {
      const params = { path: { webhookId } };
      return (await dataOf(api.GET('/webhooks/{webhookId}', { params }))).secret;
    },
  });

export const healthQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['health', webhookId],
    staleTime: FRESH_MS,
    queryFn: () =>
      dataOf(api.GET('/webhooks/{webhookId}/health', { params: { path: { webhookId } } })),
  });

export interface MessageFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
  eventType?: string | undefined;
  /** One of the tags. */
  tag?: string | undefined;
  externalId?: string | undefined;
  status?: Schemas['DeliveryStatus'] | undefined;
  /** Of the delivery to the webhook. */
  deliveryStatus?: Schemas['DeliveryStatus'] | undefined;
  from?: string | undefined;
  to?: string | undefined;
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

export const resendQuery = (resendId: string) =>
  queryOptions({
    queryKey: ['resend', resendId],
    queryFn: () => dataOf(api.GET('/resends/{resendId}', { params: { path: { resendId } } })),
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? 1_000 : false),
  });

export const apiKeysQuery = queryOptions({
  queryKey: ['api-keys'],
  staleTime: FRESH_MS,
  queryFn: () => dataOf(api.GET('/api-keys', { params: { query: {} } })),
});

/** Leaves out what is undefined: `exactOptionalPropertyTypes` tells it from an absent field. */
export function given<Fields extends object>(fields: Fields): Given<Fields> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
  return Object.fromEntries(entries) as Given<Fields>;
}

type Given<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };
