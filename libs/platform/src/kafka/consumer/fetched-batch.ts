import type { KafkaMessage } from 'kafkajs';

/** Records of one partition as a Kafka client hands them over: the part of kafkajs's payload that is used. */
export interface FetchedBatch {
  batch: {
    topic: string;
    partition: number;
    /** The offset after the last record of the partition, in decimal digits. */
    highWatermark: string;
    messages: readonly FetchedMessage[];
  };
  /** Reading resumes after this offset. Records that are not resolved are fetched again. */
  resolveOffset: (offset: string) => void;
}

export type FetchedMessage = Pick<
  KafkaMessage,
  'offset' | 'timestamp' | 'key' | 'value' | 'headers'
>;
