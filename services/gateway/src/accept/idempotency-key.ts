import { hash } from 'node:crypto';
import type { KeyHolder } from '@posthorn/platform/mongo/messages/message-queries.ts';

/**
 * How long a key is kept, counted from the creation of the message that holds it (docs/contract.md,
 * C8.1). After that the next request with the key is a new one. No timer or index removes an old key.
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
  | { kind: 'reused' };

/** Requests with the same hash have the same body, byte for byte. SHA-256, hex. */
export function bodyHashOf(body: Buffer): string {
  return hash('sha256', body, 'hex');
}

/** `holder` is null when no stored message has the key. */
export function keyUseOf(holder: KeyHolder | null, bodyHash: string, nowMs: number): KeyUse {
  if (!holder) return { kind: 'first' };
  if (nowMs - holder.createdAtMs >= KEPT_MS) return { kind: 'expired', holder };
  return holder.bodyHash === bodyHash ? { kind: 'repeat', holder } : { kind: 'reused' };
}
