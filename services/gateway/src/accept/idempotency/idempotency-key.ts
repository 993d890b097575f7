import { hash } from 'node:crypto';
import { CLAIM_LASTS_MS } from '@posthorn/platform/mongo/messages/claim-keys.ts';
import type { ClaimedKey, KeyHolder } from '@posthorn/platform/mongo/messages/key-holders.ts';

/**
 * How long a key is kept, counted from when it was claimed for the message that holds it (docs/contract.md,
 * C8.1). After that the next request with the key is a new one. MongoDB removes old keys later.
 */
export const KEPT_HOURS = 24;
const KEPT_MS = KEPT_HOURS * 3_600_000;

/** What a request with a key means. `holder` is the message that has the key. */
export type KeyUse =
  | { kind: 'first' }
  /** The holder is older than a key is kept: its key is to be released for this request. */
  | { kind: 'expired'; holder: KeyHolder }
  /** The same request once more. */
  | { kind: 'repeat'; holder: KeyHolder }
  /** The holder's request had another body. */
  | { kind: 'reused' }
  /** The message of the first request is not stored, or not by a majority yet. */
  | { kind: 'running' }
  /** The message of the first request was never stored: its claim is to be released for this request. */
  | { kind: 'abandoned'; claim: ClaimedKey };

/** Requests with the same hash have the same body, byte for byte. SHA-256, hex. */
export function bodyHashOf(body: Buffer): string {
  return hash('sha256', body, 'hex');
}

/** `found` is null when no stored message has the key, and none has claimed it. */
export function keyUseOf(found: KeyHolder | ClaimedKey | null, bodyHash: string): KeyUse {
  if (!found) return { kind: 'first' };
  if (found.kind === 'claimed') {
    const isAbandoned = found.ageMs >= CLAIM_LASTS_MS;
    return isAbandoned ? { kind: 'abandoned', claim: found } : { kind: 'running' };
  }
  const holder = found;
  if (holder.ageMs >= KEPT_MS) return { kind: 'expired', holder };
  return holder.bodyHash === bodyHash ? { kind: 'repeat', holder } : { kind: 'reused' };
}
