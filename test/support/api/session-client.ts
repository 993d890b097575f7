import type { Capability } from '@posthorn/domain/access.ts';
import { createApiClient, type ApiAnswer, type ApiClient } from './api-client.ts';
import { dataOf } from './expect-answers.ts';

export const SESSION = '/dashboard/api/session';
export const PORTAL_SESSION = '/dashboard/api/portal-session';

/** Sends requests as a page of the gateway does: without a key, with this cookie. */
export function createSessionClient(
  baseUrl: string,
  cookie: string,
  name: '1' | 'portal' | `${'1' | 'portal'} ${string}` = '1',
): ApiClient {
  return createApiClient(baseUrl, null, { cookie, 'x-posthorn-session': name });
}

/** Returns `name=value` of the cookie that the answer sets; '' for none. */
export function cookieOf({ headers }: ApiAnswer): string {
  return (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

/** A link to the portal of an app. */
export interface MadeLink {
  id: string;
  token: string;
}

export async function makePortalLink(
  company: ApiClient,
  appId: string,
  fields: { capabilities: Capability[]; expiresInSeconds?: number },
): Promise<MadeLink> {
  const body = { expiresInSeconds: 600, ...fields };
  const made = await company.post(`/api/v1/apps/${appId}/portal-links`, body);
  const { id, url } = dataOf<{ id: string; url: string }>(made, 201);
  return { id, token: url.split('#')[1] ?? '' };
}

/** Opens a link; returns the cookie of the visit. */
export async function openLink(baseUrl: string, { token }: MadeLink): Promise<string> {
  const opened = await createApiClient(baseUrl, null).post(PORTAL_SESSION, { link: token });
  dataOf(opened);
  return cookieOf(opened);
}
