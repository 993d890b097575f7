import { createBatcher } from '../async/batcher.ts';
import type { KeepTrying } from '../async/keep-trying.ts';
import type { OutgoingRecord, RecordLog } from './record-log.ts';

interface BatchedPublisherDeps {
  records: Pick<RecordLog, 'publish'>;
  keepTrying: KeepTrying;
  /** Completes "failed to …" in the log. */
  purpose: string;
}

/**
 * Nobody waits for these records, so 5 ms of linger cost nothing and save requests. A second batch in
 * flight keeps the producer busy while the brokers replicate the first.
 */
const BATCH = { maxItems: 500, lingerMs: 5, maxInFlight: 2 };

/**
 * Returns a function that publishes one record together with those that come at about the same time.
 * It resolves when Kafka has the record, and rejects with StoppedError when a stop ends the retries.
 */
export function createBatchedPublisher({
  records,
  keepTrying,
  purpose,
}: BatchedPublisherDeps): (record: OutgoingRecord) => Promise<void> {
  const batcher = createBatcher<OutgoingRecord, undefined>({
    maxItems: BATCH.maxItems,
    lingerMs: BATCH.lingerMs,
    maxInFlight: BATCH.maxInFlight,
    run: async (batch) => {
      await keepTrying(purpose, () => records.publish(batch));
      return batch.map(() => undefined);
    },
  });
  return batcher.add;
}
