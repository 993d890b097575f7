import { createLocalAdmin } from '../../tools/local-stack/kafka/local-admin.ts';

const MESSAGE_CREATED = 'posthorn.message-created';

/** Returns how many message-created records were ever published, copies included, since the topic was created. */
export async function countCreatedRecords(brokers: string): Promise<number> {
  const admin = createLocalAdmin(brokers);
  await admin.connect();
  try {
    const offsets = await admin.fetchTopicOffsets(MESSAGE_CREATED);
    return offsets.reduce((sum, { high }) => sum + Number(high), 0);
  } finally {
    await admin.disconnect();
  }
}
