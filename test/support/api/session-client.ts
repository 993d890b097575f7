import { createApiClient, type ApiAnswer, type ApiClient } from './api-client.ts';

export const SESSION = '/dashboard/api/session';

/** Sends requests as a page of the gateway does: without a key, with this cookie. */
export function createSessionClient(baseUrl: string, cookie: string): ApiClient {
  return createApiClient(baseUrl, null, { cookie, 'x-posthorn-session': '1' });
}

/** Returns `name=value` of the cookie that the answer sets; '' for none. */
export function cookieOf({ headers }: ApiAnswer): string {
  return (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}
