import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  concurrencyOf,
  createEndpoint,
  isSlow,
  learn,
  paceOf,
  spacingMs,
  takePacedTurn,
  type Endpoint,
  type Shown,
} from './endpoint.ts';

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

describe('the rate of an endpoint', () => {
  it('is that of the webhook, or the learned one when that is less', () => {
    endpoint.rateLimitPerSecond = 1_000;
    expect(paceOf(endpoint, NOW_MS)).toBe(1_000);
    show(10, refused(null));
    const learned = paceOf(endpoint, NOW_MS);
    expect(learned).toBeLessThan(1_000);
    endpoint.rateLimitPerSecond = 0.1;
    expect(paceOf(endpoint, NOW_MS)).toBe(0.1);
  });

  it('gives turns at even distances', () => {
    endpoint.rateLimitPerSecond = 4;
    takePacedTurn(endpoint, NOW_MS, false);
    takePacedTurn(endpoint, NOW_MS, true);
    expect(endpoint.nextTurnMs).toBe(NOW_MS + 500);
  });

  it('makes up for a late timer where others wait, by 100 ms at most, and never otherwise', () => {
    endpoint.rateLimitPerSecond = 10;
    endpoint.nextTurnMs = NOW_MS - 30;
    takePacedTurn(endpoint, NOW_MS, true);
    expect(endpoint.nextTurnMs).toBe(NOW_MS + 70);
    endpoint.nextTurnMs = NOW_MS - 5_000;
    takePacedTurn(endpoint, NOW_MS, true);
    expect(endpoint.nextTurnMs).toBe(NOW_MS);
    endpoint.nextTurnMs = NOW_MS - 5_000;
    takePacedTurn(endpoint, NOW_MS, false);
    expect(endpoint.nextTurnMs).toBe(NOW_MS + 100);
  });

  it('does not count turns when there is none', () => {
    takePacedTurn(endpoint, NOW_MS, true);
    expect(endpoint.nextTurnMs).toBe(0);
  });
});

describe('how often an endpoint can begin an attempt', () => {
  it('is taken for 100 ms by each of its places before one has ended', () => {
    expect(spacingMs(endpoint, NOW_MS)).toBe(100 / 16);
  });

  it('goes by its quickest answers, since ours make all of them look slow at once', () => {
    show(160);
    show(900);
    expect(endpoint.quickestMs).toBeCloseTo(160 + 740 * 0.02);
    show(80);
    expect(spacingMs(endpoint, NOW_MS)).toBe(80 / concurrencyOf(endpoint));
  });

  it('follows a lasting change within some dozens of answers', () => {
    show(100);
    for (let n = 0; n < 35; n += 1) show(300);
    expect(endpoint.quickestMs).toBeGreaterThan(200);
  });

  it('is never more often than its rate', () => {
    show(16);
    endpoint.rateLimitPerSecond = 0.5;
    expect(spacingMs(endpoint, NOW_MS)).toBe(2_000);
  });
});
