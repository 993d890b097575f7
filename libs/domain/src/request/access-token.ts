import type { OAuth2Client } from '../webhook.ts';

/** A token request of the client credentials grant (RFC 6749, section 4.4.2). */
interface TokenRequest {
  headers: Record<string, string>;
  body: string;
}

/** What a token server answered: a token, or why there is none, for people. */
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

/** RFC 6749, section 2.3.1: id and secret are encoded as in a form, so that either may have a colon. */
function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/** RFC 6749, appendix A.12: visible ASCII. The limit keeps the header within what receivers read. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;
/** Error codes of RFC 6749, section 5.2, and others like them. Nothing else of a refusal is shown. */
const ERROR_CODE = /^[a-z_]{1,40}$/;

/** A token whose server does not say how long it is valid. */
const UNKNOWN_LIFE_MS = 300_000;
/** However long a token is valid: so long may a token that was withdrawn still be sent. */
const MAX_USABLE_MS = 3_600_000;
/** The last part of its life in which a token is not used, so that it does not expire on its way. */
const MAX_MARGIN_MS = 30_000;
const MARGIN_SHARE = 0.25;

/** Judges the answer of a token server (RFC 6749, sections 5.1 and 5.2). `body` is all of it. */
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

/** Some servers write the seconds as text. Null for what is no time above 0. */
function lifeMsOf(expiresIn: unknown): number | null {
  if (expiresIn === undefined || expiresIn === null) return UNKNOWN_LIFE_MS;
  const seconds = typeof expiresIn === 'string' && expiresIn !== '' ? Number(expiresIn) : expiresIn;
  return typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : null;
}

/** A quarter of its life before it expires, 30 s at most, a token is not used any more. */
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
