import type { Message } from '@posthorn/domain/message.ts';
import type { RecordLog } from '../kafka/record-log.ts';
import { createdSource, recordsBetween } from './created-records.ts';

/** Records that are made at once: 8 MB of the largest. */
const PIECE = 500;

/** Publishes every record of each message in turn, so that a wide fan-out is never in memory as a whole. */
export async function publishInPieces(
  log: Pick<RecordLog, 'publish'>,
  topic: string,
  messages: readonly Message[],
): Promise<void> {
  for (const message of messages) {
    const source = createdSource(message);
    for (let begin = 0; begin < message.targets.length; begin += PIECE) {
      await log.publish(recordsBetween(topic, source, begin, begin + PIECE));
    }
  }
}
