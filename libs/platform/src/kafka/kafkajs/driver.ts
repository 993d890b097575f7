import type { Kafka } from 'kafkajs';
import type { KafkaDriver } from '../kafka-driver.ts';
import { openKafkajsGroupClient } from './group-client.ts';
import { connectProducer } from './producer.ts';

/** Sends and reads records with kafkajs. */
export function createKafkajsDriver(kafka: Kafka): KafkaDriver {
  return {
    connectProducer: () => connectProducer(kafka),
    openGroupClient: (...given) => openKafkajsGroupClient(kafka, ...given),
  };
}
