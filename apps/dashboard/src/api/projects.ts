import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, given, type Schemas } from './client.ts';
import { byIdsQuery, withoutMark } from './find.ts';
import { FRESH_MS } from './query-client.ts';

const MOST_PROJECTS = 1_000;

const APPS_PER_PAGE = 20;

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

const COUNTS_FRESH_MS = 30_000;

/** The webhooks of at most 20 apps, and their attempts of the last 24 hours. */
export const appCountsQuery = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ['app-counts', ids],
    staleTime: COUNTS_FRESH_MS,
    enabled: ids.length > 0,
    queryFn: () => {
      const query = { ids: ids.join(',') };
      return dataOf(api.GET('/app-counts', { params: { query } }));
    },
  });

export type FoundApp = Schemas['FoundApp'];

interface FoundApps {
  apps: FoundApp[];
  /** There may be more that match. */
  isMore: boolean;
}

/** The first apps of any project whose name has this text in it, or whose uid it is. */
export const findAppsQuery = (text: string) =>
  queryOptions({
    queryKey: ['apps', 'found', text],
    staleTime: COUNTS_FRESH_MS,
    placeholderData: keepPreviousData,
    queryFn: async (): Promise<FoundApps> => {
      const query = given({ text: withoutMark(text) });
      const { data, nextCursor } = await answerOf(api.GET('/find-apps', { params: { query } }));
      return { apps: data, isMore: nextCursor !== null };
    },
  });

/** One app with its project. */
export const foundAppQuery = (appId: string) =>
  queryOptions({
    queryKey: ['apps', 'one', appId],
    staleTime: COUNTS_FRESH_MS,
    enabled: appId !== '',
    queryFn: async (): Promise<FoundApp | null> => {
      const query = { text: appId, limit: 1 };
      const { data } = await answerOf(api.GET('/find-apps', { params: { query } }));
      return data[0] ?? null;
    },
  });

/** The apps of at most 100 ids, by id; null for those that do not exist. */
export const appsOfQuery = (appIds: readonly string[]) =>
  byIdsQuery<FoundApp>('apps', appIds, (query) =>
    dataOf(api.GET('/find-apps', { params: { query } })),
  );

const LINKS_PER_PAGE = 50;

/** Page by page, those that last longest first. */
export const portalLinksQuery = (appId: string) =>
  infiniteQueryOptions({
    queryKey: ['portal-links', appId],
    initialPageParam: 0,
    queryFn: ({ pageParam: skip }) => {
      const query = { appId, limit: LINKS_PER_PAGE, skip };
      return dataOf(api.GET('/portal-links', { params: { query } }));
    },
    getNextPageParam: (last, _pages, skip) => nextSkip(last.length, LINKS_PER_PAGE, skip),
  });

/** Makes a single-use link to the portal of an app. */
export function makePortalLink(appId: string, body: Schemas['CreatePortalLink']) {
  const params = { path: { appId } };
  return dataOf(api.POST('/apps/{appId}/portal-links', { params, body }));
}

/** The link opens no more, and the visit that it began ends. */
export function revokePortalLink(linkId: string) {
  const params = { path: { linkId } };
  return answerOf(api.DELETE('/portal-links/{linkId}', { params }));
}

export const portalSettingsQuery = queryOptions({
  queryKey: ['portal-settings'],
  queryFn: () => dataOf(api.GET('/portal-settings')),
});

export function writePortalSettings(body: Schemas['UpdatePortalSettings']) {
  return dataOf(api.PUT('/portal-settings', { body }));
}

export const projectQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['project', projectId],
    queryFn: () => dataOf(api.GET('/projects/{projectId}', { params: { path: { projectId } } })),
  });
