import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  concurrencyOf,
  createEndpoint,
  isSlow,
  learn,
  type Endpoint,
  type Shown,
} from './endpoint.ts';
import { paceOf } from './pace.ts';

const BOUNDS = { floor: 1, start: 16, ceiling: 64 };
const NOW_MS = 100_000;

let endpoint: Endpoint;

beforeEach(() => {
  endpoint = createEndpoint({ webhookId: 'wh_1', companyId: 'comp_1' }, BOUNDS);
});

/** An attempt that ends now. */
function show(tookMs: number, shown: Partial<Shown> = {}): void {
  const endedMs = shown.endedMs ?? NOW_MS;
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
      ...shown,
    },
    BOUNDS,
  );
}

const refused = (retryAfterMs: number | null): Partial<Shown> => ({
  outcome: 'http_429',
  statusCode: 429,
  retryAfterMs,
});

describe('a new endpoint', () => {
  it('has the places it begins with, no rate, no pause, and is not slow', () => {
    expect(concurrencyOf(endpoint)).toBe(16);
    expect(paceOf(endpoint, NOW_MS)).toBeNull();
    expect(isSlow(endpoint, NOW_MS)).toBe(false);
    expect(endpoint.holdUntilMs).toBe(0);
  });
});

describe('an endpoint is slow', () => {
  it('from an attempt of a second on, until one is quicker', () => {
    show(999);
    expect(isSlow(endpoint, NOW_MS)).toBe(false);
    show(1_000);
    expect(isSlow(endpoint, NOW_MS)).toBe(true);
    show(10);
    expect(isSlow(endpoint, NOW_MS)).toBe(false);
  });

  it('for a minute without traffic', () => {
    show(1_000);
    expect(isSlow(endpoint, NOW_MS + 59_999)).toBe(true);
    expect(isSlow(endpoint, NOW_MS + 60_000)).toBe(false);
  });

  it('while an attempt lasts for too long', () => {
    endpoint.overdue = 1;
    show(10);
    expect(isSlow(endpoint, NOW_MS)).toBe(true);
  });
});

describe('the pause that an endpoint asks for', () => {
  it('is kept with a 429 and with a 503, and with nothing else', () => {
    show(10, { outcome: 'http_4xx', statusCode: 404, retryAfterMs: 9_000 });
    expect(endpoint.holdUntilMs).toBe(0);
    show(10, { outcome: 'http_5xx', statusCode: 503, retryAfterMs: 1_000 });
    expect(endpoint.holdUntilMs).toBe(NOW_MS + 1_000);
    show(10, refused(5_000));
    expect(endpoint.holdUntilMs).toBe(NOW_MS + 5_000);
  });

  it('is not shortened by a later answer', () => {
    show(10, refused(60_000));
    show(10, refused(1_000));
    show(10);
    expect(endpoint.holdUntilMs).toBe(NOW_MS + 60_000);
  });

  it('is none with a 429 that names no time, which lowers the rate alone', () => {
    show(10, refused(null));
    expect(endpoint.holdUntilMs).toBe(0);
    expect(paceOf(endpoint, NOW_MS)).not.toBeNull();
  });

  it('lowers the rate with a 503 as well, and a 503 without one does not', () => {
    show(10, { outcome: 'http_5xx', statusCode: 503 });
    expect(paceOf(endpoint, NOW_MS)).toBeNull();
    show(10, { outcome: 'http_5xx', statusCode: 503, retryAfterMs: 1_000 });
    expect(paceOf(endpoint, NOW_MS)).not.toBeNull();
  });
});
