import { fromBase64, isSignedByPublished, type Key } from './key-set.ts';
import type { Bytes } from './read-bytes.ts';
import { bodyWasParsed, VerifyError } from './verify-error.ts';

/** The facts that a receiver knows about its sender. At least one of `secrets` and `jwksUrl` is needed. */
export interface VerifyOptions {
  /**
   * The secrets of the webhook as Posthorn shows them, `whsec_…`. A signature by one of them is enough: the new and the
   * old one during a rotation.
   */
  secrets?: string | readonly string[];
  /**
   * The address of the sender's public keys, `https://…/.well-known/webhooks-keys/{companyId}`, for webhooks with
   * `signatureAlgorithm: ed25519`. It is https, or http of this machine (localhost, 127.0.0.0/8, [::1]). The keys are
   * kept for the `max-age` of the answer, a minute at least and a day at most. They are read again when none of them
   * verifies a delivery, at most every 10 s.
   */
  jwksUrl?: string;
  /** How far the timestamp may be from now, before and after; 300 by default. */
  toleranceSeconds?: number;
  /**
   * Returns whether an event with this id was handled before. It is called last, when the signature is good. Let it
   * look only, and note the id where the event is handled, in the same transaction: a retry has the same id, and an id
   * that is noted before a handler fails would refuse its retries.
   */
  seen?: (id: string) => boolean | Promise<boolean>;
  /**
   * Verifies the header `X-Service-Signature`, or the one that is named here, in place of `webhook-signature`. Its key
   * is the `hmacSecret` of the webhook, else its `secret`. It covers the body alone: id and timestamp are not signed,
   * so it does not stop replays.
   */
  serviceSignature?: boolean | string;
  /** Makes the request for `jwksUrl`; the global `fetch` by default. */
  fetch?: typeof fetch;
  /** The clock, in milliseconds since 1970; `Date.now` by default. */
  nowMs?: () => number;
}

/** Headers of `fetch`, or a plain object with any spelling of the names, as Node and its frameworks have it. */
export type RequestHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyInput extends VerifyOptions {
  /** The body as it was received: bytes, or text in UTF-8. */
  body: unknown;
  headers: RequestHeaders;
}

/** A request that is from the sender, and unchanged. `Payload` is what your code expects of it: nothing checks it. */
export interface VerifiedEvent<Payload = unknown> {
  /** Of the message. It is the same in every retry. */
  id: string;
  /** When this attempt was signed, to the second. */
  timestamp: Date;
  /**
   * The type of the event, such as `order.paid`, from the header `webhook-event-type`; null without one. The signature does
   * not cover it: whoever can change a request on its way can change it. It selects a handler, and proves nothing.
   */
  eventType: string | null;
  /** The body, parsed. */
  payload: Payload;
  rawBody: Uint8Array;
}

/**
 * Posthorn sends at most two entries in `webhook-signature`. The bound keeps a stranger from having a large body hashed
 * hundreds of times.
 */
const MAX_SIGNATURES = 16;

/**
 * Verifies a request by Standard Webhooks 1.0: `v1` (HMAC SHA-256) with `secrets`, `v1a` (Ed25519) with `jwksUrl`. Where
 * none of the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` is present, those of Svix count, which
 * have the same content (`svix-id`, `svix-timestamp`, `svix-signature`).
 *
 * Throws a VerifyError when the request is not accepted, a TypeError when the options are wrong, and what `seen` throws.
 */
export async function verify<Payload = unknown>(
  input: VerifyInput,
): Promise<VerifiedEvent<Payload>> {
  checkOptions(input);
  const { toleranceSeconds = 300, serviceSignature, seen, nowMs = Date.now } = input;
  const rawBody = bytesOf(input.body);
  const { id, seconds, signature } = signedParts(input.headers, serviceSignature);
  const ageSeconds = Math.floor(nowMs() / 1_000) - Number(seconds);
  // In this form a tolerance that is NaN accepts nothing.
  if (!(ageSeconds <= toleranceSeconds)) {
    throw new VerifyError('too_old', `The request was signed ${ageSeconds} s ago.`);
  }
  if (!(ageSeconds >= -toleranceSeconds)) {
    throw new VerifyError('too_new', `The request is signed ${-ageSeconds} s in the future.`);
  }
  const isGenuine = serviceSignature
    ? await isServiceSignature(input, signature, rawBody)
    : await isStandardSignature(input, signature, contentOf(id, seconds, rawBody));
  if (!isGenuine) {
    throw new VerifyError('no_match', 'No signature is by one of the secrets or keys.');
  }
  const event = {
    id,
    timestamp: new Date(Number(seconds) * 1_000),
    eventType: headerOf(input.headers, 'webhook-event-type') || null,
    payload: parseJson(rawBody) as Payload,
    rawBody,
  };
  if (await seen?.(id)) throw new VerifyError('seen_before', `${id} was handled before.`);
  return event;
}

/** Throws a TypeError when options are wrong, without showing a secret. `verify` calls it each time. */
export function checkOptions(options: VerifyOptions): void {
  const { jwksUrl, serviceSignature } = options;
  const secrets = secretsOf(options);
  // The key of the service signature is any text.
  const isKey = (secret: string): boolean =>
    Boolean(serviceSignature) || standardKey(secret) !== null;
  const wrong = secrets.findIndex((secret) => !secret || !isKey(secret));
  if (wrong >= 0) {
    throw new TypeError(`secrets[${wrong}] is not whsec_ and base64: is its variable set?`);
  }
  if (jwksUrl !== undefined && !isSafeUrl(jwksUrl)) {
    throw new TypeError('jwksUrl is not https, nor http of this machine');
  }
  if (secrets.length === 0 && (jwksUrl === undefined || serviceSignature)) {
    throw new TypeError(`${serviceSignature ? 'secrets is' : 'secrets and jwksUrl are'} missing`);
  }
}

/**
 * Returns the secrets without blanks around them, which copied ones and variables of files have: decoding base64 skips
 * blanks, but not the prefix behind one, so that the secret would be another key. Another key of the service signature
 * is any text, and stays as it is.
 */
const secretsOf = ({ secrets = [], serviceSignature }: VerifyOptions): readonly string[] =>
  // At runtime, a variable of the environment may be missing.
  ([secrets].flat() as (string | undefined)[]).map((secret = '') => {
    const trimmed = secret.trim();
    return serviceSignature && !trimmed.startsWith(PREFIX) ? secret : trimmed;
  });

const PREFIX = 'whsec_';

function isSafeUrl(text: string): boolean {
  const { protocol, hostname } = new URL(text);
  if (protocol === 'https:') return true;
  return protocol === 'http:' && /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}

const encode = (text: string): Bytes => new TextEncoder().encode(text);

function bytesOf(body: unknown): Bytes {
  if (typeof body === 'string') return encode(body);
  // The class is not asked for: in a test runner or an edge runtime, bytes may be of another realm.
  if (ArrayBuffer.isView(body)) {
    const { buffer, byteOffset, byteLength } = body;
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    return kindOf(buffer) === SHARED ? bytes.slice() : (bytes as Bytes);
  }
  if (kindOf(body) === SHARED) return new Uint8Array(body as SharedArrayBuffer).slice();
  if (kindOf(body) === 'ArrayBuffer') return new Uint8Array(body as ArrayBuffer);
  throw bodyWasParsed('Pass the body as it was received, such as `await request.text()`.');
}

/** WebCrypto refuses it, and it could change while it is verified. WebAssembly with threads has it. */
const SHARED = 'SharedArrayBuffer';

const kindOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

interface SignedParts {
  id: string;
  /** Digits, as they were signed. */
  seconds: string;
  signature: string;
}

function signedParts(
  headers: RequestHeaders,
  serviceSignature: boolean | string | undefined,
): SignedParts {
  const names = ['id', 'timestamp', 'signature'];
  const read = (prefix: string): string[] =>
    names.map((name) => headerOf(headers, `${prefix}-${name}`));
  const standard = read('webhook');
  const [id = '', seconds = '', given = ''] = standard.some(Boolean) ? standard : read('svix');
  const ownName = serviceSignature === true ? 'x-service-signature' : serviceSignature;
  const signature = ownName ? headerOf(headers, ownName) : given;
  const missing = [id, seconds, signature].indexOf('');
  if (missing >= 0) {
    const name = missing === 2 && ownName ? ownName : `webhook-${names[missing] ?? ''}`;
    throw new VerifyError('missing_header', `The header ${name} is missing.`);
  }
  if (!/^\d{1,12}$/.test(seconds)) {
    throw new VerifyError('bad_header', 'The timestamp is not a number of seconds.');
  }
  return { id, seconds, signature };
}

/** Returns the value of a header; empty without it. */
function headerOf(headers: RequestHeaders, name: string): string {
  if (typeof headers.get === 'function') return headers.get(name) ?? '';
  const wanted = name.toLowerCase();
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === wanted);
  return String(found?.[1] ?? '');
}

/** The signed content: `id.timestamp.body`. */
function contentOf(id: string, seconds: string, body: Bytes): Bytes {
  const start = encode(`${id}.${seconds}.`);
  const content = new Uint8Array(start.length + body.length);
  content.set(start);
  content.set(body, start.length);
  return content;
}

async function isStandardSignature(
  options: VerifyOptions,
  header: string,
  content: Bytes,
): Promise<boolean> {
  const { jwksUrl, fetch = globalThis.fetch, nowMs = Date.now } = options;
  const entries = header.split(' ', MAX_SIGNATURES).map((entry) => entry.split(','));
  const signaturesOf = (version: string, length: number): Bytes[] =>
    entries
      .map(([name, base64]) => (name === version ? fromBase64(base64) : null))
      .filter((bytes) => bytes?.length === length) as Bytes[];
  const macs = signaturesOf('v1', 32);
  const keys = macs.length > 0 ? secretsOf(options).map(standardKey).map(hmacKey) : [];
  if (await isSignedByOne(await Promise.all(keys), macs, content)) return true;
  const signatures = signaturesOf('v1a', 64);
  if (jwksUrl === undefined || signatures.length === 0) return false;
  return isSignedByPublished({ jwksUrl, fetch, nowMs }, (published) =>
    isSignedByOne(published, signatures, content),
  );
}

/** The lower-case hex HMAC SHA-256 of the body under the text of the secret (docs/contract.md C9.4). */
async function isServiceSignature(
  options: VerifyOptions,
  hex: string,
  body: Bytes,
): Promise<boolean> {
  const pairs = /^[0-9a-f]{64}$/.test(hex) ? (hex.match(/../g) ?? []) : [];
  const mac = Uint8Array.from(pairs, (pair) => parseInt(pair, 16));
  const keys = secretsOf(options).map(encode).map(hmacKey);
  return isSignedByOne(await Promise.all(keys), [mac], body);
}

/** Whether one of the keys made one of the signatures. WebCrypto compares in constant time. */
async function isSignedByOne(
  keys: readonly Key[],
  signatures: readonly Bytes[],
  content: Bytes,
): Promise<boolean> {
  for (const key of keys) {
    for (const signature of signatures) {
      if (await crypto.subtle.verify(key.algorithm.name, key, signature, content)) return true;
    }
  }
  return false;
}

/** `checkOptions` has refused secrets without bytes. */
const hmacKey = (bytes: Bytes | null): Promise<Key> =>
  crypto.subtle.importKey(
    'raw',
    bytes ?? new Uint8Array(),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign', 'verify'],
  );

/** Returns the bytes behind the prefix, which may be absent as in Standard Webhooks; null when there are none. */
function standardKey(secret: string): Bytes | null {
  const key = fromBase64(secret.replace(/^whsec_/, ''));
  return key?.length === 0 ? null : key;
}

function parseJson(body: Bytes): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown;
  } catch (cause) {
    throw new VerifyError('not_json', 'The signature is good, but the body is not JSON.', {
      cause,
    });
  }
}

export interface SignInput {
  /** The body as the test sends it. */
  payload: string | Uint8Array;
  /** `whsec_` and base64. */
  secret: string;
  /** Of the message; a random one by default. */
  id?: string;
  /** Now by default. */
  timestamp?: Date;
}

/** The headers of a signed request. */
export type SignedHeaders = Record<
  'webhook-id' | 'webhook-timestamp' | 'webhook-signature' | 'x-service-signature',
  string
>;

/**
 * Signs a request as Posthorn does, for tests of a receiver: with `v1`, and with the service's own signature. Throws a
 * TypeError when the secret is not `whsec_` and base64.
 */
export async function sign({
  payload,
  secret,
  id = `msg_${crypto.randomUUID()}`,
  timestamp = new Date(),
}: SignInput): Promise<SignedHeaders> {
  checkOptions({ secrets: [secret] });
  const body = bytesOf(payload);
  const seconds = String(Math.floor(timestamp.getTime() / 1_000));
  const macOf = async (key: Bytes | null, content: Bytes): Promise<Uint8Array> =>
    new Uint8Array(await crypto.subtle.sign('HMAC', await hmacKey(key), content));
  const [key = ''] = secretsOf({ secrets: secret });
  const [ownKey = ''] = secretsOf({ secrets: secret, serviceSignature: true });
  const standard = await macOf(standardKey(key), contentOf(id, seconds, body));
  const own = await macOf(encode(ownKey), body);
  return {
    'webhook-id': id,
    'webhook-timestamp': seconds,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...standard))}`,
    'x-service-signature': Array.from(own, (byte) => byte.toString(16).padStart(2, '0')).join(''),
  };
}
