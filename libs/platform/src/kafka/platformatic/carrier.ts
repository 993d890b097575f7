import type { RecordCarrier } from '../consumer/group-client.ts';
import type { CarrierSettings } from './carrier-settings.ts';
import { openGroupClient } from './group-client.ts';
import { connectSender } from './sender.ts';

/** Carries records with @platformatic/kafka. */
export function createPlatformaticCarrier(settings: CarrierSettings): RecordCarrier {
  return {
    connectSender: () => connectSender(settings),
    openGroupClient: (options, events) => openGroupClient(settings, options, events),
  };
}
