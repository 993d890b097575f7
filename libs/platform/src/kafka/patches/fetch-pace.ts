import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';

/** The part of kafkajs's consumer group, one for each run of a consumer, that is used here. */
interface ConsumerGroup {
  /** Returns a batch for each partition of the broker that was read. */
  fetch: (brokerId: number) => Promise<readonly KafkajsBatch[]>;
}

interface KafkajsBatch {
  messages: readonly unknown[];
  isEmpty: () => boolean;
  /** True when the broker has returned nothing, not even the end of a transaction. */
  isEmptyIncludingFiltered: () => boolean;
}

const FETCH_AGAIN_AFTER_MS = 10;
/** After an answer with so many, or with none, the next request waits for nothing. */
const FULL_FETCH = 100;

/**
 * A broker answers a fetch as soon as it has one record: at 200 messages/s that is a request of 24 partitions for each
 * message. So after an answer with few records the next request waits until there are more. The first record after a
 * pause is not delayed: the broker has a request then.
 */
export class FetchPace {
  /** Broker → the time from which the next request may be sent. */
  readonly #nextMs = new Map<number, number>();

  /** Returns for how long the next request waits, in milliseconds. */
  restMs(brokerId: number, nowMs: number): number {
    return Math.max(0, (this.#nextMs.get(brokerId) ?? 0) - nowMs);
  }

  answered(brokerId: number, records: number, nowMs: number): void {
    const isShort = records > 0 && records < FULL_FETCH;
    this.#nextMs.set(brokerId, isShort ? nowMs + FETCH_AGAIN_AFTER_MS : 0);
  }
}

/**
 * Kafkajs 2.2.4 fetches again when the records of the last answer are handed over. After the patch it waits, see
 * FetchPace.
 *
 * Kafkajs passes the ends of transactions, and the records of aborted ones, and hands over nothing of them. So they were
 * never committed: the group seemed to lag behind for ever, and its consumer to have stalled. After the patch such a
 * batch is handed over without records.
 */
export function patchFetchPace(): void {
  const require = createRequire(import.meta.url);
  const { prototype } = require('kafkajs/src/consumer/consumerGroup.js') as {
    prototype: ConsumerGroup;
  };
  const { fetch } = prototype;
  const paces = new WeakMap<ConsumerGroup, FetchPace>();
  prototype.fetch = async function (this: ConsumerGroup, brokerId) {
    const pace = paces.get(this) ?? new FetchPace();
    paces.set(this, pace);
    const restMs = pace.restMs(brokerId, performance.now());
    if (restMs > 0) await wait(restMs);
    const batches = await fetch.call(this, brokerId);
    const records = batches.reduce((sum, { messages }) => sum + messages.length, 0);
    pace.answered(brokerId, records, performance.now());
    for (const batch of batches) {
      if (batch.isEmpty() && !batch.isEmptyIncludingFiltered()) batch.isEmpty = () => false;
    }
    return batches;
  };
}
