import type { KafkaDriver } from '../kafka-driver.ts';
import type { DriverSettings } from './driver-settings.ts';
import { openGroupClient } from './group-client.ts';
import { connectProducer } from './producer.ts';

/** Sends and reads records with @platformatic/kafka. */
export function createPlatformaticDriver(settings: DriverSettings): KafkaDriver {
  return {
    connectProducer: () => connectProducer(settings),
    openGroupClient: (...given) => openGroupClient(settings, ...given),
  };
}
