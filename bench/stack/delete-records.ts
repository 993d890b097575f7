import type { Kafka } from 'kafkajs';

/**
 * Deletes all present records of a topic, as its retention would do later. Consumers continue after
 * them.
 */
export async function deleteRecords(kafka: Kafka, topic: string): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const offsets = await admin.fetchTopicOffsets(topic);
    // -1 means the end of the partition.
    const partitions = offsets.map(({ partition }) => ({ partition, offset: '-1' }));
    await admin.deleteTopicRecords({ topic, partitions });
  } finally {
    await admin.disconnect();
  }
}
