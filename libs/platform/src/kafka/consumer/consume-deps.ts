import type { Kafka } from 'kafkajs';
import type { Logger } from '../../service/logger.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { OpenGroupClient } from './group-client.ts';
import type { ProcessShare } from './process-share.ts';

export interface ConsumeDeps {
  /** Reads the positions of the group. */
  kafka: Kafka;
  openGroupClient: OpenGroupClient;
  /** What this process has and reports in its groups. */
  share: ProcessShare;
  logger: Logger;
  metrics: KafkaMetrics;
  /** Called when the consumer has stopped for good and only a restart of the process helps. */
  onFatal: (reason: string) => void;
}
