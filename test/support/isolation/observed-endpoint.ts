import {
  createEndpoint,
  type Endpoint,
  learn,
  type ObservedAttempt,
} from '../../../services/dispatcher/src/isolation/endpoint.ts';

const BOUNDS = { floor: 1, start: 16, ceiling: 64 };
export const NOW_MS = 100_000;

export function sampleEndpoint(): Endpoint {
  const url = 'https://one.example/';
  return createEndpoint({ webhookId: 'wh_1', companyId: 'comp_1', url }, BOUNDS);
}

/** Lets the endpoint learn from an attempt that ends now. */
export function observeAt(
  endpoint: Endpoint,
  tookMs: number,
  observed: Partial<ObservedAttempt> = {},
): void {
  const endedMs = observed.endedMs ?? NOW_MS;
  const ended = { startedMs: endedMs - tookMs, endedMs, durationMs: tookMs };
  const succeeded = { outcome: 'success', statusCode: 200, retryAfterMs: null } as const;
  learn(endpoint, { ...succeeded, ...ended, running: 1, isLimited: false, ...observed }, BOUNDS);
}
