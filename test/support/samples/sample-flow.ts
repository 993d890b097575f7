import type { EndpointFlow } from '@posthorn/platform/redis/endpoint-flows.ts';

/** The flow of an endpoint that nothing limits. */
export const sampleFlow = (changes: Partial<EndpointFlow> = {}): EndpointFlow => ({
  concurrency: 16,
  ceiling: 1_000,
  ratePerSecond: null,
  heldUntilMs: null,
  learned: {
    urlHash: 'url:hash',
    isSlow: false,
    quickestMs: 1,
    limit: { value: 16, slowStartThreshold: null, lowestMs: null },
    rate: null,
  },
  ...changes,
});
