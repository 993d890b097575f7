import type { Kafka } from 'kafkajs';
import type { KafkaDriver } from './kafka-driver.ts';
import type { KafkaClientName } from '../service/kafka-clients.ts';
import { createKafkajsDriver } from './kafkajs/driver.ts';
import type { DriverSettings } from './platformatic/driver-settings.ts';
import { createPlatformaticDriver } from './platformatic/driver.ts';

/** Creates the driver of the client that KAFKA_CLIENT names. Does not connect. */
export function openDriver(
  name: KafkaClientName,
  kafka: Kafka,
  settings: DriverSettings,
): KafkaDriver {
  switch (name) {
    case 'kafkajs':
      return createKafkajsDriver(kafka, settings.instanceId);
    case 'platformatic':
      return createPlatformaticDriver(settings);
  }
}
