import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { RecordMemory } from '@posthorn/platform/memory/record-memory.ts';

/** Counts the memory of each record until it is handled. */
export function countingMemory(
  memory: RecordMemory,
  handle: (record: LogRecord) => Promise<void>,
): (record: LogRecord) => Promise<void> {
  return async (record) => {
    const { release } = memory.hold(record.value.length);
    try {
      await handle(record);
    } finally {
      release();
    }
  };
}
