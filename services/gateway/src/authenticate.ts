import { hash } from 'node:crypto';
import { createCoalescingCache } from '@posthorn/platform/coalescing-cache.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import type { mongo } from 'mongoose';
import { ApiError } from './http/api-error.ts';
import type { Caller } from './http/route.ts';

export interface Credentials {
  apiKey: string | undefined;
  companyId: string | undefined;
}

/** Tells who calls. Throws ApiError 401 without a valid key, 403 when `companyid` is another company's. */
export type Authenticate = (credentials: Credentials) => Promise<Caller>;

/** A key that was made a moment ago is never refused: only keys that were found are remembered. */
const REMEMBER_MS = 2_000;
const MAX_REMEMBERED = 10_000;

export function createAuthenticate(db: mongo.Db): Authenticate {
  const apiKeys = collection(db, 'apiKeys');
  const callers = createCoalescingCache<Caller>({
    maxSize: MAX_REMEMBERED,
    sizeOf: () => 1,
    ttlMs: REMEMBER_MS,
  });
  const load = async (keyHash: string): Promise<Caller | null> => {
    const found = await apiKeys.findOne({ hash: keyHash }, { projection: { companyId: 1 } });
    return found && { companyId: found.companyId };
  };

  return async ({ apiKey, companyId }) => {
    if (!apiKey) throw unauthorized('Send your API key in the header x-api-key.');
    const keyHash = hashOfKey(apiKey);
    const caller = await callers.get(keyHash, () => load(keyHash));
    if (!caller) throw unauthorized('The API key is not valid.');
    if (companyId !== undefined && companyId !== caller.companyId) {
      throw new ApiError(403, 'company_mismatch', 'companyid is not the company of the API key.');
    }
    return caller;
  };
}

/** Keys are found by their hash, so nothing that is compared depends on the secret's own bytes. */
export function hashOfKey(apiKey: string): string {
  return hash('sha256', apiKey, 'hex');
}

function unauthorized(message: string): ApiError {
  return new ApiError(401, 'unauthorized', message);
}
