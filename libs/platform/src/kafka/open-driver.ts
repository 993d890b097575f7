import type { Kafka } from 'kafkajs';
import type { KafkaDriver } from './kafka-driver.ts';
import type { KafkaClientName } from '../service/kafka-clients.ts';
import { createKafkajsDriver } from './kafkajs/driver.ts';
import type { DriverSettings } from './platformatic/driver-settings.ts';

/** Creates the driver of the client that KAFKA_CLIENT names. Does not connect. */
export async function openDriver(
  name: KafkaClientName,
  kafka: Kafka,
  settings: DriverSettings,
): Promise<KafkaDriver> {
  switch (name) {
    case 'kafkajs':
      return createKafkajsDriver(kafka);
    case 'platformatic': {
      // Loaded only where it is used: it takes 0.4 s of processor time, as much as the rest of a service.
      const { createPlatformaticDriver } = await import('./platformatic/driver.ts');
      return createPlatformaticDriver(settings);
    }
  }
}
