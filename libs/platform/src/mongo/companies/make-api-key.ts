import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { SCOPES, type Scope } from '@posthorn/domain/access.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { ApiKeyDocument } from '../documents/documents.ts';

const KEY_BYTES = 32;
const SHOWN_CHARS = 12;
const CHECKSUM_CHARS = 6;
const BASE_62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** `phk_` and 32 random bytes; since checksums exist, six more characters. */
const KEY = /^(phk_[A-Za-z0-9_-]{43})([0-9A-Za-z]{6})?$/;

export interface MakeKeyDeps {
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** What a key may do besides its name; what is left out is not limited. */
export type KeyRights = Pick<ApiKeyDocument, 'scopes' | 'appId' | 'expiresAt'>;

/** What is asked for a key; what is left out is not limited. */
export interface AskedRights {
  scopes?: readonly Scope[] | undefined;
  appId?: string | undefined;
  /** Milliseconds since 1970. */
  expiresAtMs?: number | undefined;
}

/** Returns the rights as they are stored: each scope once, in the order of SCOPES. */
export function toKeyRights({ scopes, appId, expiresAtMs }: AskedRights): KeyRights {
  return {
    ...(scopes && { scopes: SCOPES.filter((each) => scopes.includes(each)) }),
    ...(appId !== undefined && { appId }),
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs) }),
  };
}

/** Makes an API key, and its document, which does not hold the key itself. */
export function makeApiKey(
  { newId, nowMs }: MakeKeyDeps,
  companyId: string,
  name: string,
  rights: KeyRights = {},
): { key: string; document: ApiKeyDocument } {
  const secret = `phk_${randomBytes(KEY_BYTES).toString('base64url')}`;
  const key = secret + checksumOf(secret);
  const document = {
    _id: newId('key'),
    companyId,
    name,
    prefix: key.slice(0, SHOWN_CHARS),
    hash: hashOfKey(key),
    createdAt: new Date(nowMs()),
    ...rights,
  };
  return { key, document };
}

/** Keys are looked up by their hash, so no comparison takes a time that depends on the key's bytes. */
export function hashOfKey(apiKey: string): string {
  return hash('sha256', apiKey, 'hex');
}

/**
 * Returns false for a text that cannot be a key: it has another form, or its checksum does not match.
 * So a mistyped or made-up key costs no look-up. Keys of earlier versions have no checksum.
 */
export function isWellFormedKey(text: string): boolean {
  const [, secret, checksum] = KEY.exec(text) ?? [];
  if (secret === undefined) return false;
  return checksum === undefined || checksum === checksumOf(secret);
}

/** The CRC-32 in base 62, as in the tokens of GitHub. */
function checksumOf(secret: string): string {
  let rest = crc32(secret);
  let text = '';
  while (text.length < CHECKSUM_CHARS) {
    text = BASE_62.charAt(rest % BASE_62.length) + text;
    rest = Math.floor(rest / BASE_62.length);
  }
  return text;
}
