import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto';
import { deriveKey, type KeyRing } from './vault.ts';

/** Texts that a client keeps for us and cannot change. They are signed, not encrypted. */
export interface SignedStatements {
  sign: (statement: string) => string;
  /** Returns the statement; null when none of our keys signed it for this use, or it was changed. */
  read: (signed: string) => string | null;
}

/** `<keyId>.<statement in base64url>.<HMAC-SHA256 in base64url>` */
const FORM = /^(?<keyId>[\w-]{1,32})\.(?<body>[\w-]{1,4096})\.(?<digest>[\w-]{43})$/;

/**
 * HMAC-SHA256 (RFC 2104) with a key derived for `use` from each of ENCRYPTION_KEYS. The first one signs,
 * every one verifies, so that keys rotate as those of records do.
 */
export function createSignedStatements(keyRing: KeyRing, use: string): SignedStatements {
  const keys = new Map(keyRing.map(({ id, key }) => [id, deriveKey(key, use)]));
  const [{ id: currentId, key }] = keyRing;
  const current = deriveKey(key, use);
  return {
    sign(statement) {
      const text = `${currentId}.${Buffer.from(statement).toString('base64url')}`;
      return `${text}.${digestOf(current, text).toString('base64url')}`;
    },
    read(signed) {
      const { keyId = '', body = '', digest = '' } = FORM.exec(signed)?.groups ?? {};
      const known = keys.get(keyId);
      if (!known) return null;
      const given = Buffer.from(digest, 'base64url');
      if (!timingSafeEqual(digestOf(known, `${keyId}.${body}`), given)) return null;
      return Buffer.from(body, 'base64url').toString('utf8');
    },
  };
}

function digestOf(key: KeyObject, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
