import type { KeyObject } from 'node:crypto';
import { hmacKey, hmacSignature, standardKey, standardSignature } from './signature.ts';
import { type AuthMethod, type Header, type Webhook } from '../webhook.ts';

/** The keys of a webhook, made once: `createSecretKey` for each delivery would double the signing time. */
export interface Signer {
  standard: KeyObject;
  /** Signs beside the new key until `expiresAtMs` (since 1970); null without a rotation. */
  previous: { key: KeyObject; expiresAtMs: number } | null;
  /** Null for webhooks that authenticate otherwise. */
  hmac: KeyObject | null;
}

export function signerOf(
  webhook: Pick<Webhook, 'secret' | 'previousSecret' | 'authMethod'>,
): Signer {
  const { authMethod, previousSecret } = webhook;
  return {
    standard: standardKey(webhook.secret),
    previous: previousSecret && {
      key: standardKey(previousSecret.secret),
      expiresAtMs: previousSecret.expiresAtMs,
    },
    hmac: authMethod.method === 'hmac' ? hmacKey(authMethod.hmacSecret) : null,
  };
}

export interface SignedParts {
  messageId: string;
  /** Seconds since 1970, of this attempt. */
  timestampSeconds: number;
  payload: Buffer;
  /** From the request that brought the message. */
  traceparent?: string | undefined;
}

/** The headers that the API shows as the defaults of a webhook. */
export const DEFAULT_HEADERS: readonly Header[] = [
  { key: 'Content-Type', value: 'application/json' },
];

/** Every header of one attempt's request: name, value, name, value, … */
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
    ...webhook.customHeaders.flatMap(({ key, value }) => [key, value]),
    ...authHeader(webhook.authMethod, signer, parts.payload),
    'webhook-id', parts.messageId,
    'webhook-timestamp', String(parts.timestampSeconds),
    'webhook-signature', standardSignatures(signer, parts),
    ...(parts.traceparent === undefined ? [] : ['traceparent', parts.traceparent]),
  ];
}

/** Standard Webhooks 1.0: signatures are separated by spaces, and a receiver needs one that matches. */
function standardSignatures({ standard, previous }: Signer, parts: SignedParts): string {
  const newest = standardSignature(standard, parts);
  if (!previous || parts.timestampSeconds * 1_000 >= previous.expiresAtMs) return newest;
  return `${newest} ${standardSignature(previous.key, parts)}`;
}

function authHeader(auth: AuthMethod, signer: Signer, payload: Buffer): [string, string] {
  switch (auth.method) {
    case 'hmac':
      return [auth.hmacHeader, hmacSignature(signer.hmac ?? hmacKey(auth.hmacSecret), payload)];
    case 'basic':
      return ['Authorization', `Basic ${basicCredentials(auth.username, auth.password)}`];
    case 'api_key':
      return [auth.apiKeyHeader, auth.apiKey];
  }
}

/** RFC 7617: user name and password in UTF-8, joined by a colon. */
function basicCredentials(username: string, password: string): string {
  return Buffer.from(`${username}:${password}`).toString('base64');
}
