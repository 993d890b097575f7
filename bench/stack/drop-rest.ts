import type { Kafka } from 'kafkajs';

/** Deletes what a topic holds now, as its retention would in the end; consumers read on behind it. */
export async function dropRest(kafka: Kafka, topic: string): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const offsets = await admin.fetchTopicOffsets(topic);
    // -1 stands for the end of the partition.
    const partitions = offsets.map(({ partition }) => ({ partition, offset: '-1' }));
    await admin.deleteTopicRecords({ topic, partitions });
  } finally {
    await admin.disconnect();
  }
}
