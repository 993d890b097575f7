import { hash, randomBytes } from 'node:crypto';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { ApiKeyDocument } from '../documents.ts';

const KEY_BYTES = 32;
const SHOWN_CHARS = 12;

export interface MakeKeyDeps {
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** Makes an API key, and its document, which does not hold the key itself. */
export function makeApiKey(
  { newId, nowMs }: MakeKeyDeps,
  companyId: string,
  name: string,
): { key: string; document: ApiKeyDocument } {
  const key = `phk_${randomBytes(KEY_BYTES).toString('base64url')}`;
  const document = {
    _id: newId('key'),
    companyId,
    name,
    prefix: key.slice(0, SHOWN_CHARS),
    hash: hashOfKey(key),
    createdAt: new Date(nowMs()),
  };
  return { key, document };
}

/** Keys are looked up by their hash, so no comparison takes a time that depends on the key's bytes. */
export function hashOfKey(apiKey: string): string {
  return hash('sha256', apiKey, 'hex');
}
