/**
 * How far the time of a service may be from that of a test. Services have the time of the database, which they know only
 * as well as a request to it is fast.
 */
export const CLOCK_MS = 100;
