import { randomBytes } from 'node:crypto';
import { createIdFactory } from '@posthorn/domain/ids.ts';

/** Returns the time of the wall clock, in milliseconds since 1970. */
export const systemClockMs = (): number => Date.now();

/** Returns milliseconds since the process started. Never goes back, unlike the wall clock. */
export const monotonicClockMs = (): number => performance.now();

/** The one id factory of this process: ids increase in the order in which they are created. */
export const systemIds = createIdFactory({ nowMs: systemClockMs, randomBytes });
