import { createSecretKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';

/** A key of AES-256-GCM. It is a KeyObject, whose bytes appear in no log and no JSON. */
export interface EncryptionKey {
  id: string;
  key: KeyObject;
}

/** The first key seals; every key opens. */
export type KeyRing = readonly [EncryptionKey, ...EncryptionKey[]];

/** The key is 32 bytes as `openssl rand -base64 32` prints them. */
const ENTRY = /^(?<id>[\w-]{1,32}):(?<base64>[A-Za-z0-9+/]{43}=)$/;

const WRONG_FORM =
  'must be keyId:key, several separated by commas; an id is 1 to 32 letters, digits, _ or -, a key is base64 of 32 bytes';

/** Reads text such as `k2:…,k1:…`. Error messages never show any of it. */
export const keyRingSchema = z.string().transform((text, context): KeyRing => {
  const keys = text.split(',').map((entry) => toKey(entry.trim()));
  const [first, ...rest] = keys.filter((key) => key !== null);
  if (!first || rest.length + 1 < keys.length) {
    context.addIssue({ code: 'custom', message: WRONG_FORM });
    return z.NEVER;
  }
  if (new Set([first, ...rest].map(({ id }) => id)).size < keys.length) {
    context.addIssue({ code: 'custom', message: 'must not have two keys of one id' });
    return z.NEVER;
  }
  return [first, ...rest];
});

function toKey(entry: string): EncryptionKey | null {
  const { id, base64 } = ENTRY.exec(entry)?.groups ?? {};
  if (id === undefined || base64 === undefined) return null;
  return { id, key: createSecretKey(base64, 'base64') };
}
