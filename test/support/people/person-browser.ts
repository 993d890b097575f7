import { expect } from '@jest/globals';
import { type ApiAnswer, type ApiClient, createApiClient } from '../api/api-client.ts';
import { dataOf } from '../api/expect-answers.ts';
import type { Login, ScriptedIssuer } from './scripted-issuer.ts';

/** A browser without pages: it keeps cookies, and follows a sign-in from the dashboard to the issuer and back. */
export interface PersonBrowser {
  /** Cookies by name; those that the gateway cleared are gone. */
  cookies: Map<string, string>;
  /** Requests as the page of the dashboard makes them. */
  api: ApiClient;
  /** Begins a sign-in. Returns the address of the issuer. */
  begin: (asked?: object) => Promise<string>;
  /** Goes back to the gateway. Returns the path that it leads to. */
  comeBack: (url: string) => Promise<string>;
  /** The whole way. Returns the path that it ends at. */
  signIn: (login: Login, asked?: object) => Promise<string>;
}

export function createPersonBrowser(baseUrl: string, issuer: ScriptedIssuer): PersonBrowser {
  const cookies = new Map<string, string>();
  const cookieHeader = (): string =>
    [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');

  const keep = (headers: Headers): void => {
    for (const cookie of headers.getSetCookie()) {
      const [pair = '', ...attributes] = cookie.split('; ');
      const [name = '', value = ''] = pair.split('=', 2);
      expect(attributes).toContain('HttpOnly');
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
      issuer.secrets.push(value);
    }
  };
  const request = async (method: string, path: string, body?: unknown, headers = {}) => {
    const page = { cookie: cookieHeader(), 'x-posthorn-session': '1', ...headers };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    // The client of other tests joins several cookies of an answer into one.
    const response = await fetch(baseUrl + path, {
      method,
      headers: { ...page, ...type },
      ...sent,
    });
    keep(response.headers);
    const { status, headers: answered } = response;
    return { status, headers: answered, body: (await response.json()) as ApiAnswer['body'] };
  };
  const api = {
    ...createApiClient(baseUrl, null),
    request,
    get: (path: string, headers?: object): Promise<ApiAnswer> =>
      request('GET', path, undefined, headers),
    post: (path: string, body: unknown, headers?: object) => request('POST', path, body, headers),
    put: (path: string, body: unknown, headers?: object) => request('PUT', path, body, headers),
    delete: (path: string, headers?: object) => request('DELETE', path, undefined, headers),
  };
  const begin = async (asked: object = {}): Promise<string> => {
    if ('invitation' in asked) issuer.secrets.push(String(asked.invitation));
    return dataOf<{ url: string }>(await api.post('/dashboard/api/oidc', asked)).url;
  };
  const comeBack = async (url: string): Promise<string> => {
    const response = await fetch(url, { headers: { cookie: cookieHeader() }, redirect: 'manual' });
    keep(response.headers);
    expect(response.status).toBe(303);
    const location = response.headers.get('location') ?? '';
    expect(location.startsWith(`${baseUrl}/dashboard/`)).toBe(true);
    return location.slice(baseUrl.length);
  };
  return {
    cookies,
    api,
    begin,
    comeBack,
    signIn: async (login, asked) => comeBack(issuer.signIn(await begin(asked), login)),
  };
}
