import { beforeEach, describe, expect, it } from '@jest/globals';
import { concurrencyOf, createEndpoint, learn, type Endpoint, type Shown } from './endpoint.ts';
import { paceOf, spacingMs, takePacedTurn, untilPaceAllowsMs } from './pace.ts';

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

const REFUSED = { outcome: 'http_429', statusCode: 429 } as const;

describe('the rate of an endpoint', () => {
  it('is that of the webhook, or the learned one when that is less', () => {
    endpoint.rateLimitPerSecond = 1_000;
    expect(paceOf(endpoint, NOW_MS)).toBe(1_000);
    show(10, REFUSED);
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

  it('makes up for a late timer where others wait, by 200 ms at most, and never otherwise', () => {
    endpoint.rateLimitPerSecond = 10;
    endpoint.nextTurnMs = NOW_MS - 30;
    takePacedTurn(endpoint, NOW_MS, true);
    expect(endpoint.nextTurnMs).toBe(NOW_MS + 70);
    endpoint.nextTurnMs = NOW_MS - 5_000;
    takePacedTurn(endpoint, NOW_MS, true);
    expect(endpoint.nextTurnMs).toBe(NOW_MS - 100);
    endpoint.nextTurnMs = NOW_MS - 5_000;
    takePacedTurn(endpoint, NOW_MS, false);
    expect(endpoint.nextTurnMs).toBe(NOW_MS + 100);
  });

  it('has no more in any second, however much there is to make up for', () => {
    endpoint.rateLimitPerSecond = 10;
    for (let n = 0; n < 10; n += 1) takePacedTurn(endpoint, NOW_MS, true);
    endpoint.nextTurnMs = NOW_MS;
    expect(untilPaceAllowsMs(endpoint, NOW_MS)).toBe(1_000);
    expect(untilPaceAllowsMs(endpoint, NOW_MS + 1_000)).toBe(0);
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
