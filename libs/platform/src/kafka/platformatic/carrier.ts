import type { Logger } from '../../logger.ts';
import type { RecordCarrier } from '../group-client.ts';
import { openGroupClient } from './group-client.ts';
import { connectSender } from './sender.ts';

export interface CarrierSettings {
  clientId: string;
  brokers: string[];
  /** Names this process among the members of its groups. */
  instanceId: string;
  logger: Logger;
}

/** Carries records with @platformatic/kafka. */
export function createPlatformaticCarrier(settings: CarrierSettings): RecordCarrier {
  return {
    connectSender: () => connectSender(settings),
    openGroupClient: (options, events) => openGroupClient(settings, options, events),
  };
}
