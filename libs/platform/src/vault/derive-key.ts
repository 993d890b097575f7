import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';

const KEY_BYTES = 32;

/**
 * Derives a key from an encryption key by HKDF (RFC 5869). `use` names what it is for (`info`), so that no
 * two uses share a key.
 */
export function deriveKey(key: KeyObject, use: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), use, KEY_BYTES)));
}
