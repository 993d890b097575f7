import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

const SECRET_PREFIX = 'whsec_';

/** Makes a webhook secret from 32 random bytes (Standard Webhooks 1.0, Signature scheme). */
export function secretFromBytes(bytes: Buffer): string {
  return SECRET_PREFIX + bytes.toString('base64');
}

/** Key of the document's own HMAC: the UTF-8 text of the secret as the API shows it, prefix included. */
export function hmacKey(secret: string): KeyObject {
  return createSecretKey(secret, 'utf8');
}

/** Key of the Standard Webhooks signature: the bytes behind the prefix. */
export function standardKey(secret: string): KeyObject {
  return createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64');
}

/**
 * HMAC SHA-256 of the raw payload, hex (spec, Authenticating deliveries). The key, or the text that
 * `hmacKey` would make it from: for one signature that costs a third less.
 */
export function hmacSignature(key: KeyObject | string, payload: Buffer | string): string {
  return createHmac('sha256', key).update(payload).digest('hex');
}

/** One `v1,…` entry of `webhook-signature` over id, timestamp (seconds) and raw payload. */
export function standardSignature(
  key: KeyObject,
  signed: { messageId: string; timestampSeconds: number; payload: Buffer },
): string {
  const mac = createHmac('sha256', key)
    .update(`${signed.messageId}.${signed.timestampSeconds}.`)
    .update(signed.payload)
    .digest('base64');
  return `v1,${mac}`;
}
