import type { Message } from '@posthorn/domain/message.ts';
import type { RecordLog } from '../kafka/record-log.ts';
import { createdSource, recordsBetween } from './created-records.ts';

/** Records that are in memory at once: 8 MB of the largest. */
const BATCH = 500;

/** Publishes the records of each message in batches, so that those of a wide fan-out are never all in memory. */
export async function publishInBatches(
  records: Pick<RecordLog, 'publish'>,
  topic: string,
  messages: readonly Message[],
): Promise<void> {
  for (const message of messages) {
    const source = createdSource(message);
    for (let begin = 0; begin < message.targets.length; begin += BATCH) {
      await records.publish(recordsBetween(topic, source, begin, begin + BATCH));
    }
  }
}
