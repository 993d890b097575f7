/** Connections of the closed loop that exceeds what the machine can process. */
export const MANY_CONNECTIONS = 256;

/** One busy endpoint, and its target. */
export interface HotEndpoint {
  takesMs: number;
  ratePerSecond: number;
  /** The target for the p99, end to end. */
  p99Ms: number;
}

export const HOT_ENDPOINTS: readonly HotEndpoint[] = [
  { takesMs: 20, ratePerSecond: 1_500, p99Ms: 500 },
  { takesMs: 200, ratePerSecond: 900, p99Ms: 800 },
];
