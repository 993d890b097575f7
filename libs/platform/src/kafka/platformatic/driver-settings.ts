import type { Logger } from '../../service/logger.ts';

export interface DriverSettings {
  clientId: string;
  brokers: string[];
  /** Names this process among the members of its groups. */
  instanceId: string;
  logger: Logger;
}
