import type { RecordMetadata } from 'kafkajs';
import { type AheadMs, boundAhead, type SeenTime } from '../service/clock-bounds.ts';
import { keyOf } from './record-log.ts';

/**
 * The clocks of the brokers, from the times that they have given to the records of this process. By partition, because each
 * has its leader.
 */
export interface BrokerClocks {
  /** Notes the replies to one send of the producer. */
  note: (replies: readonly RecordMetadata[], sent: Omit<SeenTime, 'theirMs'>) => void;
  /**
   * Returns how far the leader's clock is ahead of the monotonic clock of this process at least, in milliseconds; -Infinity
   * before the first reply. So a record that is written now gets this time or a later one.
   */
  aheadMs: (topic: string, partition: number) => number;
}

export function createBrokerClocks(): BrokerClocks {
  const known = new Map<string, AheadMs>();
  return {
    note(replies, sent) {
      for (const { topicName: topic, partition, logAppendTime } of replies) {
        const theirMs = Number(logAppendTime ?? -1);
        // -1 for a topic whose records have the times of their producers.
        if (theirMs < 0) continue;
        const key = keyOf({ topic, partition });
        known.set(key, boundAhead(known.get(key) ?? null, { ...sent, theirMs }).ahead);
      }
    },
    aheadMs: (topic, partition) => known.get(keyOf({ topic, partition }))?.leastMs ?? -Infinity,
  };
}
