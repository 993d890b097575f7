import type { KafkaMessage } from 'kafkajs';

/** Records of one partition as a client of Kafka hands them over: of kafkajs' payload what is used. */
export interface FetchedBatch {
  batch: {
    topic: string;
    partition: number;
    /** The offset after the last record of the partition, in decimal digits. */
    highWatermark: string;
    messages: readonly FetchedMessage[];
  };
  /** Reading goes on after this offset; what is not resolved is fetched again. */
  resolveOffset: (offset: string) => void;
}

export type FetchedMessage = Pick<KafkaMessage, 'offset' | 'key' | 'value' | 'headers'>;
