import type { Kafka } from 'kafkajs';
import type { RecordCarrier } from './group-client.ts';
import type { KafkaClientName } from './kafka-clients.ts';
import { createKafkajsCarrier } from './kafkajs-carrier.ts';
import { createPlatformaticCarrier, type CarrierSettings } from './platformatic/carrier.ts';

/** Makes the carrier; connects nowhere. */
export function openCarrier(
  name: KafkaClientName,
  kafka: Kafka,
  settings: CarrierSettings,
): RecordCarrier {
  switch (name) {
    case 'kafkajs':
      return createKafkajsCarrier(kafka, settings.instanceId);
    case 'platformatic':
      return createPlatformaticCarrier(settings);
  }
}
