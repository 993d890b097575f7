import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { z } from 'zod';

/** The place of a sealed value. It opens in no other place. */
export interface Binding {
  companyId: string;
  /** Id of the webhook, message or signing key that holds it. */
  ownerId: string;
  field: string;
  /** Where the value may be sent: scheme, host and port. */
  target?: string;
}

/** The number of the format (docs/decisions/0030-sealed-format-2.md). */
export const SEALED_FORMAT = 2;
const VERSION = `v${SEALED_FORMAT}`;

/** Encrypts values that the database must not be able to read (docs/decisions/0009-secrets-at-rest.md). */
export interface Vault {
  currentKeyId: string;
  seal: (plain: string, binding: Binding) => string;
  /** Throws SealedValueError when the text was changed, cut or moved, or when its key is not in the ring. */
  open: (sealed: string, binding: Binding) => string;
  /** Returns the id of the key that sealed the text. Throws SealedValueError when it is not a sealed value. */
  keyIdOf: (sealed: string) => string;
}

/** A stored value cannot be opened. The message names owner, field and key id, never the value. */
export class SealedValueError extends Error {
  override readonly name = 'SealedValueError';
  /** Null when the text is not a sealed value. */
  readonly keyId: string | null;

  constructor(message: string, keyId: string | null) {
    super(message);
    this.keyId = keyId;
  }
}

const CIPHER = 'aes-256-gcm';
/** NIST SP 800-38D: 96 random bits allow 2^32 seals under one key. */
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Names the use of the derived key (RFC 5869, `info`); the MACs of records have another name. */
const KEY_USE = 'posthorn sealed values v2';

/** `v<format>.<keyId>.<iv>.<ciphertext>.<tag>`, the last three in base64url. */
const SEALED = /^v2\.([\w-]{1,32})\.([\w-]{16})\.([\w-]*)\.([\w-]{22})$/;

/** Seals with AES-256-GCM and the first key of the ring, and opens with the key that sealed. */
export function createVault(keyRing: KeyRing): Vault {
  const [current] = keyRing;
  const keys = new Map(keyRing.map((each) => [each.id, each]));
  return {
    currentKeyId: current.id,
    seal: (plain, binding) => seal(current, plain, binding),
    open(sealed, binding) {
      const parts = partsOf(sealed);
      if (!parts) throw new SealedValueError(`${nameOf(binding)} is not a sealed value`, null);
      const key = keys.get(parts.keyId);
      if (!key) throw unopened(binding, parts.keyId, 'which is not in ENCRYPTION_KEYS');
      const plain = open(key, parts, binding);
      if (plain === null) throw unopened(binding, parts.keyId, 'and was changed or moved');
      return plain;
    },
    keyIdOf(sealed) {
      const parts = partsOf(sealed);
      if (!parts) throw new SealedValueError('not a sealed value', null);
      return parts.keyId;
    },
  };
}

function seal(sealing: EncryptionKey, plain: string, binding: Binding): string {
  const iv = randomBytes(IV_BYTES);
  const options = { authTagLength: TAG_BYTES };
  const cipher = createCipheriv(CIPHER, keyFor(sealing, binding), iv, options);
  cipher.setAAD(boundTo(sealing, binding));
  const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  const bytes = [iv, ciphertext, cipher.getAuthTag()];
  const texts = bytes.map((part) => part.toString('base64url'));
  return [VERSION, sealing.id, ...texts].join('.');
}

interface SealedParts {
  keyId: string;
  iv: Buffer;
  ciphertext: Buffer;
  tag: Buffer;
}

/** Null for anything that `seal` does not write, such as base64url with unused bits set at its end. */
function partsOf(sealed: string): SealedParts | null {
  const [, keyId = '', ...texts] = SEALED.exec(sealed) ?? [];
  const bytes = texts.map((text) => Buffer.from(text, 'base64url'));
  const [iv, ciphertext, tag] = bytes;
  if (!iv || !ciphertext || !tag) return null;
  const isExact = bytes.every((part, index) => part.toString('base64url') === texts[index]);
  return isExact ? { keyId, iv, ciphertext, tag } : null;
}

/** Null when the bytes were not sealed for this binding. */
function open(sealing: EncryptionKey, parts: SealedParts, binding: Binding): string | null {
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(CIPHER, keyFor(sealing, binding), parts.iv, options);
  decipher.setAAD(boundTo(sealing, binding)).setAuthTag(parts.tag);
  const start = decipher.update(parts.ciphertext);
  try {
    return Buffer.concat([start, decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}

/** Each document has a key of its own, so that each may be sealed 2^32 times. */
function keyFor({ key }: EncryptionKey, { companyId, ownerId }: Binding): KeyObject {
  return deriveKey(key, JSON.stringify([KEY_USE, companyId, ownerId]));
}

/** Includes version and key id, so that no part of the text can be exchanged. */
function boundTo({ id }: EncryptionKey, binding: Binding): Buffer {
  const { companyId, ownerId, field, target = null } = binding;
  return Buffer.from(JSON.stringify([VERSION, id, companyId, ownerId, field, target]));
}

function nameOf({ ownerId, field }: Binding): string {
  return `${field} of ${ownerId}`;
}

function unopened(binding: Binding, keyId: string, why: string): SealedValueError {
  return new SealedValueError(`${nameOf(binding)} is sealed with key ${keyId}, ${why}`, keyId);
}

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

const KEY_BYTES = 32;

/**
 * Derives a key from an encryption key by HKDF (RFC 5869). `use` names what it is for (`info`), so that no
 * two uses share a key.
 */
export function deriveKey(key: KeyObject, use: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), use, KEY_BYTES)));
}
