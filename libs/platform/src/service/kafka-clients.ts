/** The packages that can carry records; both may serve one topic and one group at once. */
export const KAFKA_CLIENTS = ['kafkajs', 'platformatic'] as const;

export type KafkaClientName = (typeof KAFKA_CLIENTS)[number];
