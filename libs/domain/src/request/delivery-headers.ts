import type { KeyObject } from 'node:crypto';
import { ImpossibleError } from '../required.ts';
import { type AuthMethod, type Header, isSignedByCompany, type Webhook } from '../webhook.ts';
import {
  asymmetricSignature,
  hmacKey,
  hmacSignature,
  type KeyPairSigner,
  type SignedContent,
  standardKey,
  standardSignature,
} from './signature.ts';

/** What signs the deliveries of a webhook: its own secrets, or the signing keys of its company. */
export type Signer = SecretSigner | KeyPairSigner;

/** The keys of a webhook, made once: `createSecretKey` for each delivery would double the signing time. */
interface SecretSigner {
  kind: 'secret';
  standard: KeyObject;
  /** Signs beside the new key until `expiresAtMs` (since 1970); null without a rotation. */
  previous: { key: KeyObject; expiresAtMs: number } | null;
  /** Null for webhooks that authenticate otherwise. */
  hmac: KeyObject | null;
}

export function signerOf(
  webhook: Pick<Webhook, 'secret' | 'previousSecret' | 'authMethod'>,
): SecretSigner {
  const { authMethod, previousSecret } = webhook;
  return {
    kind: 'secret',
    standard: standardKey(webhook.secret),
    previous: previousSecret && {
      key: standardKey(previousSecret.secret),
      expiresAtMs: previousSecret.expiresAtMs,
    },
    hmac: authMethod.method === 'hmac' ? hmacKey(authMethod.hmacSecret) : null,
  };
}

/** `timestampSeconds` is of this attempt. */
export interface SignedParts extends SignedContent {
  /** From the request that brought the message. */
  traceparent?: string | undefined;
  /** For a webhook with `oauth2`. */
  accessToken?: string | undefined;
}

/** The headers that the API shows as the defaults of a webhook. */
export const DEFAULT_HEADERS: readonly Header[] = [
  { key: 'Content-Type', value: 'application/json' },
];

/** The kept part of a response is shown as text, so that it must not be compressed. */
const ACCEPT_HEADERS: readonly Header[] = [
  { key: 'Accept', value: '*/*' },
  { key: 'Accept-Encoding', value: 'identity' },
];

/** Returns the headers that say which responses are accepted, without those that the webhook sets itself. */
export function acceptHeaders({
  customHeaders,
  authMethod,
}: Pick<Webhook, 'customHeaders' | 'authMethod'>): readonly Header[] {
  const own = [...customHeaders.map(({ key }) => key), ownHeaderName(authMethod)];
  const taken = own.filter((name) => /^accept/i.test(name)).map((name) => name.toLowerCase());
  if (taken.length === 0) return ACCEPT_HEADERS;
  return ACCEPT_HEADERS.filter(({ key }) => !taken.includes(key.toLowerCase()));
}

/** The name of the header that the method of authentication sets; empty for none of its own. */
function ownHeaderName(auth: AuthMethod): string {
  switch (auth.method) {
    case 'hmac':
      return isSignedByCompany(auth) ? '' : auth.hmacHeader;
    case 'api_key':
      return auth.apiKeyHeader;
    case 'basic':
    case 'oauth2':
      return 'Authorization';
  }
}

/**
 * Every header of one attempt's request: name, value, name, value, … Throws an ImpossibleError when the
 * signer is of another kind than the webhook asks for, or its access token is missing.
 */
export function deliveryHeaders(
  webhook: Webhook,
  signer: Signer,
  parts: SignedParts,
  userAgent: string,
): string[] {
  // prettier-ignore
  return [
    ...DEFAULT_HEADERS.flatMap(({ key, value }) => [key, value]),
    'User-Agent', userAgent,
    ...acceptHeaders(webhook).flatMap(({ key, value }) => [key, value]),
    ...webhook.customHeaders.flatMap(({ key, value }) => [key, value]),
    ...authHeader(webhook.authMethod, signer, parts),
    'webhook-id', parts.messageId,
    'webhook-timestamp', String(parts.timestampSeconds),
    'webhook-signature', standardSignatures(signer, parts),
    ...(parts.traceparent === undefined ? [] : ['traceparent', parts.traceparent]),
  ];
}

/** Standard Webhooks 1.0: signatures are separated by spaces, and a receiver needs one that matches. */
function standardSignatures({ kind, standard, previous }: Signer, parts: SignedParts): string {
  const sign = kind === 'key_pair' ? asymmetricSignature : standardSignature;
  const newest = sign(standard, parts);
  if (!previous || parts.timestampSeconds * 1_000 >= previous.expiresAtMs) return newest;
  return `${newest} ${sign(previous.key, parts)}`;
}

function authHeader(
  auth: AuthMethod,
  signer: Signer,
  { payload, accessToken }: SignedParts,
): [] | [name: string, value: string] {
  if (isSignedByCompany(auth) !== (signer.kind === 'key_pair')) {
    throw new ImpossibleError(`a ${signer.kind} cannot sign for this webhook`);
  }
  if (signer.kind === 'key_pair') return [];
  switch (auth.method) {
    case 'hmac':
      return [auth.hmacHeader, hmacSignature(signer.hmac ?? hmacKey(auth.hmacSecret), payload)];
    case 'basic':
      return ['Authorization', `Basic ${basicCredentials(auth.username, auth.password)}`];
    case 'api_key':
      return [auth.apiKeyHeader, auth.apiKey];
    case 'oauth2':
      if (accessToken === undefined) throw new ImpossibleError('a delivery without its token');
      return ['Authorization', `Bearer ${accessToken}`];
  }
}

/** RFC 7617: user name and password in UTF-8, joined by a colon. */
function basicCredentials(username: string, password: string): string {
  return Buffer.from(`${username}:${password}`).toString('base64');
}

/** RFC 9110, 5.6.2: the characters of a header name. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/**
 * Printable Latin-1 without tabs, so that CR, LF and NUL can never reach the wire, and without a space at either end:
 * that is no part of a field value (RFC 9110, 5.5), so the receiver would get another one.
 */
export const HEADER_VALUE_PATTERN =
  '^([\\x21-\\x7e\\xa0-\\xff]([\\x20-\\x7e\\xa0-\\xff]*[\\x21-\\x7e\\xa0-\\xff])?)?$';
export const MAX_HEADER_VALUE_CHARS = 4_096;
const VALUE = new RegExp(HEADER_VALUE_PATTERN);

/** Of user names, passwords and other credentials: no control characters (RFC 7617, 2; RFC 6749, A). */
export const CREDENTIAL_PATTERN = '^[^\\x00-\\x1f\\x7f]*$';
const CREDENTIAL = new RegExp(CREDENTIAL_PATTERN);

/** Names in lower case; a client may not set them, however it spells them. */
// prettier-ignore
export const REFUSED_NAMES: ReadonlySet<string> = new Set([
  // The sender sets connection, framing and routing.
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'host',
  'cookie', 'expect', 'via', 'x-real-ip', 'forwarded', 'http2-settings',
  // These unlock the metadata services of clouds.
  'metadata', 'metadata-flavor', 'x-google-metadata-request',
  // Posthorn sets these itself.
  'user-agent', 'traceparent', 'tracestate',
]);
/** Prefixes of names that a client may not set. */
// prettier-ignore
export const REFUSED_PREFIXES: readonly string[] = [
  'proxy-', 'x-forwarded-', 'content-', 'webhook-', 'x-aws-ec2-metadata-token',
];

/** Returns why a client may not set the header; null when it may. */
export function refusalOfHeaderName(name: string): string | null {
  if (!TOKEN.test(name)) return 'must be an HTTP header name of at most 128 characters';
  const lower = name.toLowerCase();
  const isReserved =
    REFUSED_NAMES.has(lower) || REFUSED_PREFIXES.some((prefix) => lower.startsWith(prefix));
  return isReserved ? 'is a header that the service or the connection sets' : null;
}

export function isHeaderValue(value: string): boolean {
  return value.length <= MAX_HEADER_VALUE_CHARS && VALUE.test(value);
}

/** False for text that would not arrive as it is: with control characters, or with half a character (a lone surrogate). */
export function isCredential(text: string): boolean {
  return CREDENTIAL.test(text) && text.isWellFormed();
}
