import type { components, paths } from '@posthorn/client';
import createClient, { type Middleware } from 'openapi-fetch';
import { GATEWAY_URL, PORTAL_COMPANY_ID } from './addresses.ts';
import { failureOf } from './failure.ts';
import { recordCall } from './recorded-calls.ts';

export type Schemas = components['schemas'];

/** What this page shows: the company, in a portal the link of the visit. Unknown at first in the dashboard. */
let shownId: string | null = PORTAL_COMPANY_ID;

/** Names the session whose data this page shows, null for none: another one that the browser may get is not used. */
export function showSession(id: string | null): void {
  shownId = id ?? PORTAL_COMPANY_ID;
}

/**
 * Says to the gateway that this page sent the request, which no other site can say, and which session it means: a
 * browser may have one of the dashboard and one of a portal, and other tabs may begin others.
 */
export function sessionHeaders(): Record<string, string> {
  const kind = PORTAL_COMPANY_ID === null ? '1' : 'portal';
  return { 'X-Posthorn-Session': shownId === null ? kind : `${kind} ${shownId}` };
}

const name: Middleware = {
  onRequest({ request }) {
    for (const [header, value] of Object.entries(sessionHeaders())) {
      request.headers.set(header, value);
    }
    recordCall(request);
  },
};

/** The API, with the session of this browser. */
export const api = createClient<paths>({ baseUrl: `${GATEWAY_URL}/api/v1` });
api.use(name);

interface Answer<Body> {
  data?: Body;
  error?: unknown;
  response: Response;
}

/** Returns the whole answer of a call. Throws ApiFailure when it was refused. */
export async function answerOf<Body>(call: Promise<Answer<Body>>): Promise<Body> {
  const { data, error, response } = await call;
  if (data === undefined) throw failureOf(response.status, error);
  return data;
}

/** Returns the data of an answer. Throws ApiFailure when the call was refused. */
export async function dataOf<Data>(call: Promise<Answer<{ data: Data }>>): Promise<Data> {
  return (await answerOf(call)).data;
}

/** Leaves out what is undefined: `exactOptionalPropertyTypes` tells it from an absent field. */
export function given<Fields extends object>(fields: Fields): Given<Fields> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
  return Object.fromEntries(entries) as Given<Fields>;
}

type Given<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };
