import { encodeRetryDue, type DueAttempt } from '@posthorn/domain/records/records.ts';
import { refOf } from '@posthorn/domain/message/delivery.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createBatchedPublisher } from '@posthorn/platform/kafka/publishing/batched-publisher.ts';
import type { LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';

/**
 * Moves a due attempt of a slow endpoint to the slow lane, so that it does not block the others of its
 * partition. Resolves when Kafka has stored it.
 */
export type MoveToSlowLane = (record: LogRecord, due: DueAttempt) => Promise<void>;

export interface SlowLaneDeps {
  records: Pick<RecordLog, 'publish'>;
  slowLaneTopic: string;
  keepTrying: KeepTrying;
  count: () => void;
}

export function createMoveToSlowLane({
  records,
  slowLaneTopic,
  keepTrying,
  count,
}: SlowLaneDeps): MoveToSlowLane {
  const publish = createBatchedPublisher({
    records,
    keepTrying,
    purpose: 'publish attempts to the slow lane',
  });
  return async ({ key, headers }, due) => {
    const { attemptNumber, trigger, dueAtMs } = due;
    const value = encodeRetryDue({ ...refOf(due), attemptNumber, trigger, dueAtMs });
    await publish({ topic: slowLaneTopic, key, value, headers });
    count();
  };
}
