/** How long the partitions of a member that died stay idle before others get them. */
export const SESSION_TIMEOUT_MS = 10_000;

/**
 * A member learns from a heartbeat that its group changes, and every other member waits for it meanwhile:
 * nothing is delivered for up to this time when a dispatcher comes or goes. A heartbeat is one small
 * request.
 */
export const HEARTBEAT_EVERY_MS = 500;

/**
 * How long the others wait for a member that does not join again. Longer only when it has died or hangs;
 * one that lives joins again with the next change. With a time of ten seconds the start of one dispatcher
 * stopped all others for as long as the session of a dead one lasted.
 */
export const REBALANCE_TIMEOUT_MS = 5_000;
