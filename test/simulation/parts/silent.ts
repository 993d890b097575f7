import { createLogger } from '@posthorn/platform/service/logger.ts';

/** What the services would log is told by the trace instead. */
export const LOGGER = createLogger('simulation', 'silent');
