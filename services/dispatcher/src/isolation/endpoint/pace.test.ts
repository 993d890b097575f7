import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  concurrencyOf,
  createEndpoint,
  learn,
  type Endpoint,
  type ObservedAttempt,
} from './endpoint.ts';
import { paceOf, spacingMs, advancePace, untilPaceAllowsMs } from './pace.ts';

const BOUNDS = { floor: 1, start: 16, ceiling: 64 };
const NOW_MS = 100_000;

let endpoint: Endpoint;

beforeEach(() => {
  endpoint = createEndpoint({ webhookId: 'wh_1', companyId: 'comp_1' }, BOUNDS);
});

/** An attempt that ends now. */
function observe(tookMs: number, observed: Partial<ObservedAttempt> = {}): void {
  const endedMs = observed.endedMs ?? NOW_MS;
  learn(
    endpoint,
    {
      outcome: 'success',
      statusCode: 200,
      retryAfterMs: null,
      startedMs: endedMs - tookMs,
      endedMs,
      durationMs: tookMs,
      running: 1,
      isLimited: false,
      ...observed,
    },
    BOUNDS,
  );
}

const REFUSED = { outcome: 'http_429', statusCode: 429 } as const;

describe('the pace of an endpoint', () => {
  it('is that of the webhook, or the learned one when that is less', () => {
    endpoint.rateLimitPerSecond = 1_000;
    expect(paceOf(endpoint, NOW_MS)).toBe(1_000);
    observe(10, { ...REFUSED, retryAfterMs: 1_000 });
    const learned = paceOf(endpoint, NOW_MS);
    expect(learned).toBeLessThan(1_000);
    endpoint.rateLimitPerSecond = 0.1;
    expect(paceOf(endpoint, NOW_MS)).toBe(0.1);
  });

  it('spaces attempts evenly', () => {
    endpoint.rateLimitPerSecond = 4;
    advancePace(endpoint, NOW_MS, false);
    advancePace(endpoint, NOW_MS, true);
    expect(endpoint.nextPacedMs).toBe(NOW_MS + 500);
  });

  it('catches up on a late timer by 200 ms at most, and only while other attempts wait', () => {
    endpoint.rateLimitPerSecond = 10;
    endpoint.nextPacedMs = NOW_MS - 30;
    advancePace(endpoint, NOW_MS, true);
    expect(endpoint.nextPacedMs).toBe(NOW_MS + 70);
    endpoint.nextPacedMs = NOW_MS - 5_000;
    advancePace(endpoint, NOW_MS, true);
    expect(endpoint.nextPacedMs).toBe(NOW_MS - 100);
    endpoint.nextPacedMs = NOW_MS - 5_000;
    advancePace(endpoint, NOW_MS, false);
    expect(endpoint.nextPacedMs).toBe(NOW_MS + 100);
  });

  it('has no more than the rate in any second, however much there is to catch up on', () => {
    endpoint.rateLimitPerSecond = 10;
    for (let n = 0; n < 10; n += 1) advancePace(endpoint, NOW_MS, true);
    endpoint.nextPacedMs = NOW_MS;
    expect(untilPaceAllowsMs(endpoint, NOW_MS)).toBe(1_000);
    expect(untilPaceAllowsMs(endpoint, NOW_MS + 1_000)).toBe(0);
  });

  it('does not count attempts when there is none', () => {
    advancePace(endpoint, NOW_MS, true);
    expect(endpoint.nextPacedMs).toBe(0);
  });
});

describe('the spacing of an endpoint', () => {
  it('assumes 100 ms for each attempt before one has ended', () => {
    expect(spacingMs(endpoint, NOW_MS)).toBe(100 / 16);
  });

  it('goes by its quickest responses, since our own stalls make all of them look slow', () => {
    observe(160);
    observe(900);
    expect(endpoint.quickestMs).toBeCloseTo(160 + 740 * 0.02);
    observe(80);
    expect(spacingMs(endpoint, NOW_MS)).toBe(80 / concurrencyOf(endpoint));
  });

  it('follows a lasting change within some dozens of responses', () => {
    observe(100);
    for (let n = 0; n < 35; n += 1) observe(300);
    expect(endpoint.quickestMs).toBeGreaterThan(200);
  });

  it('is never shorter than its rate allows', () => {
    observe(16);
    endpoint.rateLimitPerSecond = 0.5;
    expect(spacingMs(endpoint, NOW_MS)).toBe(2_000);
  });

  it('goes by the rate that is expected after an outage, not by that of probes in it', () => {
    for (let n = 0; n < 200; n += 1) observe(10, { endedMs: NOW_MS + n * 10 });
    const refusedMs = (n: number): number => NOW_MS + 2_000 + n * 1_500;
    for (let n = 0; n < 20; n += 1) observe(10, { ...REFUSED, endedMs: refusedMs(n) });
    const nowMs = refusedMs(20);
    expect(paceOf(endpoint, nowMs)).toBeLessThan(1);
    expect(1_000 / spacingMs(endpoint, nowMs)).toBeCloseTo(98, 0);
  });

  it('expects ten attempts a second of an endpoint that has only refused', () => {
    for (let n = 0; n < 20; n += 1) observe(10, { ...REFUSED, endedMs: NOW_MS + n * 1_500 });
    expect(spacingMs(endpoint, NOW_MS + 30_000)).toBe(100);
  });
});
