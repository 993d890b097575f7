import { randomBytes } from 'node:crypto';
import { createIdFactory } from '@posthorn/domain/ids.ts';

/** The wall clock, in milliseconds since 1970. */
export const systemClockMs = (): number => Date.now();

/** The one id factory of this process: ids grow in the order in which they are made. */
export const systemIds = createIdFactory({ nowMs: systemClockMs, randomBytes });
