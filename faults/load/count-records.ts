import { eventually } from '../../test/support/time/eventually.ts';
import { createLocalAdmin } from '../../tools/local-stack/kafka/local-admin.ts';

const MESSAGE_CREATED = 'posthorn.message-created';

const WITHIN_MS = 30_000;

/** Returns how many message-created records were ever published, copies included, since the topic was created. */
export async function countCreatedRecords(brokers: string): Promise<number> {
  return eventually(
    'the offsets of message-created',
    () => readCount(brokers).catch(() => null),
    WITHIN_MS,
  );
}

async function readCount(brokers: string): Promise<number> {
  const admin = createLocalAdmin(brokers);
  await admin.connect();
  try {
    const offsets = await admin.fetchTopicOffsets(MESSAGE_CREATED);
    return offsets.reduce((sum, { high }) => sum + Number(high), 0);
  } finally {
    await admin.disconnect();
  }
}
