import type { KafkaAccess } from '../connection/access.ts';
import type { Logger } from '../../service/logger.ts';

export interface DriverSettings {
  clientId: string;
  access: KafkaAccess;
  logger: Logger;
}
