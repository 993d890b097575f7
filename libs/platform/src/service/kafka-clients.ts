/** The packages that can send and read records. Both may be used for one topic and one group at once. */
export const KAFKA_CLIENTS = ['kafkajs', 'platformatic'] as const;

export type KafkaClientName = (typeof KAFKA_CLIENTS)[number];
