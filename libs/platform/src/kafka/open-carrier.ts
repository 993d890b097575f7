import type { Kafka } from 'kafkajs';
import type { RecordCarrier } from './consumer/group-client.ts';
import type { KafkaClientName } from '../service/kafka-clients.ts';
import { createKafkajsCarrier } from './kafkajs/carrier.ts';
import type { CarrierSettings } from './platformatic/carrier-settings.ts';
import { createPlatformaticCarrier } from './platformatic/carrier.ts';

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
