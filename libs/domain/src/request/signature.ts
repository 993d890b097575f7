import { createHmac, createSecretKey, sign, type KeyObject } from 'node:crypto';

const SECRET_PREFIX = 'whsec_';

/** Spells 32 random bytes as a webhook secret (Standard Webhooks 1.0, Signature scheme). */
export function secretFromBytes(bytes: Buffer): string {
  return SECRET_PREFIX + bytes.toString('base64');
}

/** Key of the HMAC header (docs/contract.md C9.4): the UTF-8 text of the secret as the API shows it, prefix included. */
export function hmacKey(secret: string): KeyObject {
  return createSecretKey(secret, 'utf8');
}

/** Key of the Standard Webhooks signature: the bytes behind the prefix. */
export function standardKey(secret: string): KeyObject {
  return createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64');
}

/**
 * The HMAC SHA-256 of the raw payload, in hex (docs/contract.md C9.4). Takes the key, or the text of
 * it: for a single signature the text costs a third less.
 */
export function hmacSignature(key: KeyObject | string, payload: Buffer | string): string {
  return createHmac('sha256', key).update(payload).digest('hex');
}

/** What a Standard Webhooks signature is made of. */
export interface SignedContent {
  messageId: string;
  /** Since 1970. */
  timestampSeconds: number;
  payload: Buffer;
}

/** One `v1,…` entry of `webhook-signature`: signs id, timestamp (seconds) and raw payload. */
export function standardSignature(key: KeyObject, signed: SignedContent): string {
  const mac = createHmac('sha256', key)
    .update(`${signed.messageId}.${signed.timestampSeconds}.`)
    .update(signed.payload)
    .digest('base64');
  return `v1,${mac}`;
}

/**
 * One `v1a,…` entry of `webhook-signature`: signs the same content with an Ed25519 key (Standard Webhooks
 * 1.0, asymmetric signatures; RFC 8032). Ed25519 reads its content twice, so it cannot be given in parts.
 */
export function asymmetricSignature(
  key: KeyObject,
  { messageId, timestampSeconds, payload }: SignedContent,
): string {
  const content = Buffer.concat([Buffer.from(`${messageId}.${timestampSeconds}.`), payload]);
  return `v1a,${sign(null, content, key).toString('base64')}`;
}
