import { createApiClient, type ApiAnswer, type ApiClient } from './api-client.ts';

export const SESSION = '/dashboard/api/session';
export const PORTAL_SESSION = '/dashboard/api/portal-session';

/** Sends requests as a page of the gateway does: without a key, with this cookie. */
export function createSessionClient(
  baseUrl: string,
  cookie: string,
  kind: '1' | 'portal' = '1',
): ApiClient {
  return createApiClient(baseUrl, null, { cookie, 'x-posthorn-session': kind });
}

/** Returns `name=value` of the cookie that the answer sets; '' for none. */
export function cookieOf({ headers }: ApiAnswer): string {
  return (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}
