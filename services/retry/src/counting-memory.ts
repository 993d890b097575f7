import type { ConsumeOptions } from '@posthorn/platform/kafka/record-log.ts';
import type { RecordMemory } from '@posthorn/platform/memory/record-memory.ts';

/** Counts the memory of each record until it is handled. */
export function countingMemory(
  memory: RecordMemory,
  handle: ConsumeOptions['handle'],
): ConsumeOptions['handle'] {
  return async (record, isOurs) => {
    const { release } = memory.hold(record.value.length);
    try {
      await handle(record, isOurs);
    } finally {
      release();
    }
  };
}
