import type { KeyObject } from 'node:crypto';
import { authHeader, headerNameOf, isSignedByCompany, type Proof } from '../auth-methods.ts';
import { type Header, MASK, maskedHeader } from '../field-types.ts';
import { ImpossibleError } from '../required.ts';
import type { Webhook } from '../webhook.ts';
import {
  asymmetricSignature,
  hmacKey,
  hmacSignature,
  type KeyPairSigner,
  type SignedContent,
  standardKey,
  standardSignature,
} from './signature.ts';

/** The keys that sign the deliveries of a webhook: of its own secrets, or of its company. */
export type Signer = SecretSigner | KeyPairSigner;

/** The parsed keys of a webhook: `createSecretKey` for each delivery would double the signing time. */
interface SecretSigner {
  kind: 'secret';
  standard: KeyObject;
  /** Signs beside the new key until `expiresAtMs` (since 1970); null without a rotation. */
  previous: { key: KeyObject; expiresAtMs: number } | null;
  /** Null for webhooks with another method of authentication. */
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
  /** The header of the request with the message. */
  traceparent?: string | undefined;
  /** For a webhook with `oauth2`. */
  accessToken?: string | undefined;
  /** The event type of the message. */
  eventType?: string | null | undefined;
}

/** The headers that the API shows as the defaults of a webhook. */
export const DEFAULT_HEADERS: readonly Header[] = [
  { key: 'Content-Type', value: 'application/json' },
];

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
  if (isSignedByCompany(webhook.authMethod) !== (signer.kind === 'key_pair')) {
    throw new ImpossibleError(`a ${signer.kind} cannot sign for this webhook`);
  }
  const { messageId, eventType, payload, accessToken, timestampSeconds, traceparent } = parts;
  const hmacOf = (secret: string): string => {
    const key = signer.kind === 'secret' ? signer.hmac : null;
    return hmacSignature(key ?? hmacKey(secret), payload);
  };
  const [timestamp, signature] = [String(timestampSeconds), standardSignatures(signer, parts)];
  // prettier-ignore
  const headers = [
    ...lastingHeaders(webhook, { messageId, eventType, userAgent, hmacOf, accessToken }),
    'webhook-timestamp', timestamp,
    'webhook-signature', signature,
  ];
  if (hasSvixHeaders(webhook))
    headers.push('svix-timestamp', timestamp, 'svix-signature', signature);
  if (traceparent !== undefined) headers.push('traceparent', traceparent);
  return headers;
}

/**
 * The headers of the deliveries of a message as people see them, with credentials masked. `signature` is the hex HMAC
 * of the payload; null when the payload is erased. Timestamp and its signature are left out: each attempt makes new
 * ones.
 */
export function maskedDeliveryHeaders(
  webhook: Webhook,
  { signature, ...parts }: MaskedParts,
): Header[] {
  const hmacOf = (): string => signature ?? MASK;
  const flat = lastingHeaders(webhook, { ...parts, hmacOf, isMasked: true });
  return flat.flatMap((key, index) => (index % 2 ? [] : [{ key, value: flat[index + 1] ?? '' }]));
}

interface NamedParts {
  messageId: string;
  eventType?: string | null | undefined;
  userAgent: string;
}

interface MaskedParts extends NamedParts {
  signature: string | null;
}

type LastingParts = NamedParts & Proof;

/** The headers that all attempts for a message have in common: name, value, name, value, … */
function lastingHeaders(webhook: Webhook, parts: LastingParts): string[] {
  const { customHeaders, authMethod } = webhook;
  const custom = parts.isMasked ? customHeaders.map(maskedHeader) : customHeaders;
  // prettier-ignore
  const headers = [
    ...flat(DEFAULT_HEADERS),
    'User-Agent', parts.userAgent,
    ...flat(acceptHeaders(webhook)),
    ...flat(custom),
    ...authHeader(authMethod, parts),
    'webhook-id', parts.messageId,
    // No part of what is signed (Standard Webhooks 1.0).
    ...(parts.eventType ? ['webhook-event-type', parts.eventType] : []),
  ];
  if (hasSvixHeaders(webhook)) headers.push('svix-id', parts.messageId);
  return headers;
}

/** Svix signs id, timestamp and body as Standard Webhooks does, and names the headers after itself. */
const hasSvixHeaders = ({ signatureHeaders }: Webhook): boolean =>
  signatureHeaders.includes('svix');

const flat = (headers: readonly Header[]): string[] =>
  headers.flatMap(({ key, value }) => [key, value]);

/** Responses are shown as text, so they must not be compressed. */
const ACCEPT_HEADERS: readonly Header[] = [
  { key: 'Accept', value: '*/*' },
  { key: 'Accept-Encoding', value: 'identity' },
];

/** Returns the headers for accepted responses, without those that the webhook sets itself. */
function acceptHeaders({
  customHeaders,
  authMethod,
}: Pick<Webhook, 'customHeaders' | 'authMethod'>): readonly Header[] {
  const own = [...customHeaders.map(({ key }) => key), headerNameOf(authMethod) ?? ''];
  const taken = own.filter((name) => /^accept/i.test(name)).map((name) => name.toLowerCase());
  if (taken.length === 0) return ACCEPT_HEADERS;
  return ACCEPT_HEADERS.filter(({ key }) => !taken.includes(key.toLowerCase()));
}

/** Standard Webhooks 1.0: signatures are separated by spaces, and a receiver needs one that matches. */
function standardSignatures({ kind, standard, previous }: Signer, parts: SignedParts): string {
  const sign = kind === 'key_pair' ? asymmetricSignature : standardSignature;
  const newest = sign(standard, parts);
  if (!previous || parts.timestampSeconds * 1_000 >= previous.expiresAtMs) return newest;
  return `${newest} ${sign(previous.key, parts)}`;
}
