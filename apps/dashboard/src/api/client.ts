import createClient, { type Middleware } from 'openapi-fetch';
import { GATEWAY_URL, PORTAL_COMPANY_ID } from './addresses.ts';
import { failureOf } from './failure.ts';
import { recordCall } from './recorded-calls.ts';
import type { components, paths } from './schema.d.ts';

export type Schemas = components['schemas'];

/**
 * Says to the gateway that this page sent the request, which no other site can say, and which of the two sessions
 * a browser may have: that of the dashboard, or that of a portal.
 */
export const SESSION_HEADER = { 'X-Posthorn-Session': PORTAL_COMPANY_ID === null ? '1' : 'portal' };

const record: Middleware = {
  onRequest({ request }) {
    recordCall(request);
  },
};

/** The API, with the session of this browser. */
export const api = createClient<paths>({ baseUrl: GATEWAY_URL, headers: SESSION_HEADER });
api.use(record);

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
