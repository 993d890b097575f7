import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, type Schemas } from './client.ts';
import { nextSkip } from './queries.ts';

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
