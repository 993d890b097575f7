import type { Message } from '@posthorn/domain/message.ts';
import mongoose from 'mongoose';
import { asStoreError } from '../connection/connect.ts';
import type { IdempotencyKeys } from './idempotency-keys.ts';

/**
 * Claims the keys of the messages of a batch that have one. Returns those that must not be stored. `repeated`: another
 * message has the key. `refused`: it is not certain whether this one has it.
 */
export type ClaimKeys = (
  batch: readonly Message[],
) => Promise<ReadonlyMap<Message, 'repeated' | 'refused'>>;

export interface ClaimKeysDeps {
  keys: Pick<IdempotencyKeys, 'claim'>;
  monotonicMs: () => number;
}

export const NONE: Awaited<ReturnType<ClaimKeys>> = new Map();

/**
 * A claim whose message is not stored counts for two minutes. A claim takes 25 s at most, and so does the write of the
 * message; the rest is for a new primary whose clock differs.
 */
export const CLAIM_LASTS_MS = 120_000;
/** Later than that, this process was suspended meanwhile, and the claim may be over. */
const CLAIM_WITHIN_MS = 30_000;

export function createClaimKeys({ keys, monotonicMs }: ClaimKeysDeps): ClaimKeys {
  return async (batch) => {
    const keyed = batch.filter(({ idempotency }) => idempotency !== null);
    if (keyed.length === 0) return NONE;
    const refused = new Map(keyed.map((message) => [message, 'refused' as const]));
    const beganMs = monotonicMs();
    try {
      const taken = await keys.claim(keyed);
      if (monotonicMs() - beganMs > CLAIM_WITHIN_MS) return refused;
      return new Map([...taken].map((message) => [message, 'repeated']));
    } catch (error) {
      const isUnanswered =
        error instanceof mongoose.mongo.MongoBulkWriteError || asStoreError(error) !== error;
      if (!isUnanswered) throw error;
      return refused;
    }
  };
}
