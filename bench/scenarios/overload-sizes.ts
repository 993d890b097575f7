/** Connections of the closed loop that is more than the machine takes. */
export const CROWD = 256;

/** One endpoint that is busy, and what is wanted of it. */
export interface HotEndpoint {
  takesMs: number;
  ratePerSecond: number;
  /** Wanted: end to end, p99. */
  p99Ms: number;
}

export const HOT_ENDPOINTS: readonly HotEndpoint[] = [
  { takesMs: 20, ratePerSecond: 1_500, p99Ms: 500 },
  { takesMs: 200, ratePerSecond: 900, p99Ms: 800 },
];
