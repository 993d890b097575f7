import { encodeRetryDue, refOf, type DueAttempt } from '@posthorn/domain/records/records.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';

/**
 * Takes a due attempt of a slow endpoint out of the way of the others on its partition. Resolves when
 * Kafka has it.
 */
export type MoveToSlowLane = (record: LogRecord, due: DueAttempt) => Promise<void>;

export interface SlowLaneDeps {
  records: Pick<RecordLog, 'publish'>;
  slowLaneTopic: string;
  count: () => void;
}

const BATCH = { maxItems: 500, lingerMs: 5, maxInFlight: 2 };

export function createMoveToSlowLane({
  records,
  slowLaneTopic,
  count,
}: SlowLaneDeps): MoveToSlowLane {
  const publish = createBatcher<OutgoingRecord, undefined>({
    ...BATCH,
    run: async (batch) => {
      await keepTrying(() => records.publish(batch));
      return batch.map(() => undefined);
    },
  });
  return async ({ key, headers }, due) => {
    const { attemptNumber, trigger, dueAtMs } = due;
    const value = encodeRetryDue({ ...refOf(due), attemptNumber, trigger, dueAtMs });
    await publish.add({ topic: slowLaneTopic, key, value, headers });
    count();
  };
}
