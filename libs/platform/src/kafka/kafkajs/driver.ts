import type { Kafka } from 'kafkajs';
import type { KafkaDriver } from '../kafka-driver.ts';
import { openKafkajsGroupClient } from './group-client.ts';
import { connectProducer } from './producer.ts';

/** Sends and reads records with kafkajs. `instanceId` names this process among the members of its groups. */
export function createKafkajsDriver(kafka: Kafka, instanceId: string): KafkaDriver {
  return {
    connectProducer: () => connectProducer(kafka),
    openGroupClient: (options, events) =>
      openKafkajsGroupClient(kafka, instanceId, options, events),
  };
}
