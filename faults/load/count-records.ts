import { eventually } from '../../test/support/time/eventually.ts';
import { createLocalAdmin } from '../../tools/local-stack/kafka/local-admin.ts';

const MESSAGE_CREATED = 'posthorn.message-created';
const WITHIN_MS = 30_000;

/** Returns how many message-created records were ever published, copies included, since the topic was created. */
export async function countCreatedRecords(brokers: string): Promise<number> {
  const read = (): Promise<string[] | null> => readEnds(brokers).catch(() => null);
  const ends = await eventually('the offsets of message-created', read, WITHIN_MS);
  return ends.reduce((sum, end) => sum + Number(end), 0);
}

async function readEnds(brokers: string): Promise<string[]> {
  const admin = createLocalAdmin(brokers);
  await admin.connect();
  try {
    return (await admin.fetchTopicOffsets(MESSAGE_CREATED)).map(({ high }) => high);
  } finally {
    await admin.disconnect();
  }
}
