import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { EncryptionKey, KeyRing } from './vault-keys.ts';

/** The place of a sealed value. It opens in no other place. */
export interface Binding {
  companyId: string;
  /** Id of the webhook, message or signing key that holds it. */
  ownerId: string;
  field: string;
}

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

const VERSION = 'v1';
const CIPHER = 'aes-256-gcm';
/** NIST SP 800-38D: 96 random bits allow 2^32 seals under one key. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** `v1.<keyId>.<iv>.<ciphertext>.<tag>`, the last three in base64url. */
const SEALED = /^v1\.([\w-]{1,32})\.([\w-]{16})\.([\w-]*)\.([\w-]{22})$/;

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

function seal({ id, key }: EncryptionKey, plain: string, binding: Binding): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(boundTo(id, binding));
  const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  const bytes = [iv, ciphertext, cipher.getAuthTag()];
  return [VERSION, id, ...bytes.map((part) => part.toString('base64url'))].join('.');
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
function open({ id, key }: EncryptionKey, parts: SealedParts, binding: Binding): string | null {
  const decipher = createDecipheriv(CIPHER, key, parts.iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(boundTo(id, binding)).setAuthTag(parts.tag);
  const start = decipher.update(parts.ciphertext);
  try {
    return Buffer.concat([start, decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}

/** Includes version and key id, so that no part of the text can be exchanged. */
function boundTo(keyId: string, { companyId, ownerId, field }: Binding): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, companyId, ownerId, field]));
}

function nameOf({ ownerId, field }: Binding): string {
  return `${field} of ${ownerId}`;
}

function unopened(binding: Binding, keyId: string, why: string): SealedValueError {
  return new SealedValueError(`${nameOf(binding)} is sealed with key ${keyId}, ${why}`, keyId);
}
