import type { Kafka } from 'kafkajs';
import type { Logger } from '../../service/logger.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { OpenGroupClient } from './group-client.ts';

export interface ConsumeDeps {
  /** Reads the positions of the group. */
  kafka: Kafka;
  openGroupClient: OpenGroupClient;
  logger: Logger;
  metrics: KafkaMetrics;
  /** Called when the consumer has stopped for good and only a restart of the process helps. */
  onFatal: (reason: string) => void;
}
