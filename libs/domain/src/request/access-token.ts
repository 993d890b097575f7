import type { OAuth2Client } from '../webhook.ts';

/** A token request of the client credentials grant (RFC 6749, section 4.4.2). */
interface TokenRequest {
  headers: Record<string, string>;
  body: string;
}

/** The response of a token server: a token, or the reason why there is none, for people. */
export type TokenAnswer =
  { kind: 'token'; value: string; usableForMs: number } | { kind: 'failed'; reason: string };

export function tokenRequestOf(client: OAuth2Client): TokenRequest {
  const { clientId, clientSecret, scope, audience, clientAuthentication } = client;
  const fields = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scope !== null) fields.set('scope', scope);
  if (audience !== null) fields.set('audience', audience);
  const headers = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'content-type': 'application/x-www-form-urlencoded',
  };
  if (clientAuthentication === 'post') {
    fields.set('client_id', clientId);
    fields.set('client_secret', clientSecret);
    return { headers, body: fields.toString() };
  }
  const login = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`;
  const authorization = `Basic ${Buffer.from(login).toString('base64')}`;
  return { headers: { ...headers, authorization }, body: fields.toString() };
}

/** RFC 6749, section 2.3.1: id and secret are encoded as in a form, so that they may contain colons. */
function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/** RFC 6749, appendix A.12: visible ASCII. The limit keeps the header within what receivers read. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;
/** Error codes of RFC 6749, section 5.2, and similar ones: the only part of a refusal that is shown. */
const ERROR_CODE = /^[a-z_]{1,40}$/;

/** The life of a token whose server does not state it. */
const UNKNOWN_LIFE_MS = 300_000;
/** Bounds the use of any token, so that a withdrawn one is not sent for longer. */
const MAX_USABLE_MS = 3_600_000;
/** A token is not used in this last time of its life, so that it does not expire on its way. */
const MAX_MARGIN_MS = 30_000;
const MARGIN_SHARE = 0.25;

/** Reads the response of a token server (RFC 6749, sections 5.1 and 5.2). `body` is complete. */
export function readTokenAnswer(statusCode: number, body: string): TokenAnswer {
  const fields = parseObject(body);
  if (statusCode < 200 || statusCode > 299) return failed(refusalOf(statusCode, fields));
  if (!fields) return failed('the token server did not answer with a JSON object');
  const { access_token: value, token_type: type, expires_in: expiresIn } = fields;
  if (typeof value !== 'string' || !TOKEN.test(value)) {
    return failed('the token server answered without a usable access_token');
  }
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
    return failed('the token server answered without the token_type Bearer');
  }
  const lifeMs = lifeMsOf(expiresIn);
  if (lifeMs === null)
    return failed('the token server answered with an expires_in that is no time');
  return { kind: 'token', value, usableForMs: usableForMs(lifeMs) };
}

const failed = (reason: string): TokenAnswer => ({ kind: 'failed', reason });

function refusalOf(statusCode: number, fields: Record<string, unknown> | null): string {
  const code = fields?.error;
  const shown = typeof code === 'string' && ERROR_CODE.test(code) ? `: ${code}` : '';
  return `the token server answered ${statusCode}${shown}`;
}

/** Some servers write the seconds as text. Returns null unless the value is a time above 0. */
function lifeMsOf(expiresIn: unknown): number | null {
  if (expiresIn === undefined || expiresIn === null) return UNKNOWN_LIFE_MS;
  const seconds = typeof expiresIn === 'string' && expiresIn !== '' ? Number(expiresIn) : expiresIn;
  return typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : null;
}

/** The use of a token ends a quarter of its life, at most 30 s, before it expires. */
function usableForMs(lifeMs: number): number {
  const marginMs = Math.min(MAX_MARGIN_MS, lifeMs * MARGIN_SHARE);
  return Math.max(1, Math.min(MAX_USABLE_MS, Math.floor(lifeMs - marginMs)));
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
