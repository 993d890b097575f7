import { describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Hold } from '@posthorn/domain/waiting.ts';
import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import type { DeliveryFigures } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { WebhookHolders } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { EndpointFlow } from '@posthorn/platform/redis/endpoint-flows.ts';
import fc from 'fast-check';
import { sampleFlow } from '../../../../test/support/samples/sample-flow.ts';
import { countingIds, sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { type HealthDeps, readHealth } from './health.ts';

const FREE = { disabled: false, cancelBeforeMs: null, rateLimitPerSecond: null };

type Made = [Outcome, durationMs: number];

/** One message for each entry: delivered if its last attempt succeeded, else pending; null without a document. */
async function healthOf(
  deliveries: readonly (readonly Made[] | null)[],
  older = 0,
  readCircuit: () => Promise<number | null> = () => Promise.resolve(null),
  readFlow: () => Promise<EndpointFlow | null> = () => Promise.resolve(null),
  held: { webhook?: Hold; app?: Hold } = {},
  /** The places of the messages that were accepted while the webhook was disabled. */
  disabledAt: readonly number[] = [],
) {
  const { webhook = null, app: appHeld = null } = held;
  const newId = countingIds();
  const messages = deliveries.map(() => sampleMessage(newId('msg')));
  const known = new Map<string, DeliveryFigures>();
  for (const [n, made] of deliveries.entries()) {
    if (!made) continue;
    const attempts = made.map(([outcome, durationMs], index) => {
      return { outcome, durationMs, startedAt: new Date(index + 1) };
    });
    const status = attempts.at(-1)?.outcome === 'success' ? 'delivered' : 'pending';
    known.set(deliveryIdOf(messages[n]?.id ?? '', 'wh_1'), { status, attempts });
  }
  const pendingAmong = (ids: readonly string[]): number =>
    ids.filter((id) => known.get(id)?.status === 'pending').length;
  const deps: HealthDeps = {
    holds: {
      holdersOf(places) {
        const own = { companyId: 'comp_a', appId: 'app_1', ...FREE, held: webhook };
        const known = places.map(({ webhookId: id }): [string, WebhookHolders] => [
          id,
          { webhook: id === 'wh_1' ? own : null, appHeld, isSuspended: false },
        ]);
        return Promise.resolve(new Map(known));
      },
    },
    messages: {
      listIds: (_company, { disabledWebhookId }, limit) =>
        Promise.resolve(
          messages
            .filter((_, n) => disabledWebhookId === undefined || disabledAt.includes(n))
            .slice(0, limit)
            .map(({ id }) => id),
        ),
    },
    deliveries: {
      figuresOf: (_company, ids) => Promise.resolve(ids.flatMap((id) => known.get(id) ?? [])),
      countPending(_company, _webhook, exceptIds, limit) {
        const all = older + pendingAmong([...known.keys()]);
        return Promise.resolve(Math.min(all - pendingAmong(exceptIds), limit));
      },
    },
    circuits: { read: readCircuit },
    flows: { read: readFlow },
    concurrency: { floor: 1, start: 16, ceiling: 1_000 },
    nowMs: () => 1_000,
  };
  const read = (webhookId: string) => readHealth(deps, 'comp_a', webhookId);
  return { known: await read('wh_1'), unknown: await read('wh_2') };
}

/** Of a dispatcher with 1,000 places. */
const FLOW = sampleFlow({ ceiling: 500 });

describe('the health of a webhook', () => {
  test('that got no message yet has no rate and no latencies', async () => {
    expect((await healthOf([])).known).toEqual({
      circuit: 'closed',
      probeAt: null,
      lastAttemptAt: null,
      concurrency: { now: 16, floor: 1, ceiling: 1_000 },
      ratePerSecond: null,
      pausedUntil: null,
      held: null,
      successRate: null,
      latencyMs: { p50: null, p95: null },
      backlog: 0,
    });
  });

  test.each<[string, EndpointFlow, object]>([
    [
      'how many attempts at once and how fast',
      { ...FLOW, concurrency: 180, ratePerSecond: 285.5 },
      {
        concurrency: { now: 180, floor: 1, ceiling: 500 },
        ratePerSecond: 285.5,
        pausedUntil: null,
      },
    ],
    [
      'until when nothing is sent',
      { ...FLOW, heldUntilMs: 61_000 },
      { pausedUntil: '1970-01-01T00:01:01.000Z' },
    ],
    ['no pause that has ended', { ...FLOW, heldUntilMs: 1_000 }, { pausedUntil: null }],
  ])('shows what its dispatcher has written: %s', async (_what, flow, shown) => {
    const { known } = await healthOf([], 0, undefined, () => Promise.resolve(flow));
    expect(known).toMatchObject(shown);
  });

  test('shows the flow of a new endpoint while Redis is away', async () => {
    const away = () => Promise.reject(new Error('away'));
    const { known } = await healthOf([], 0, away, away);
    expect(known).toMatchObject({ concurrency: { now: 16 }, pausedUntil: null });
  });

  const HOLD: Hold = { sinceMs: 1, untilMs: null, reason: null, by: 'key_1' };
  test.each<[string, { webhook?: Hold; app?: Hold }, Hold | null]>([
    ['its own hold', { webhook: HOLD, app: { ...HOLD, by: 'key_2' } }, HOLD],
    ['the hold of its app', { app: HOLD }, HOLD],
    ['no hold whose time is over', { webhook: { ...HOLD, untilMs: 1_000 } }, null],
  ])('shows %s', async (_what, holds, shown) => {
    const { known } = await healthOf([], 0, undefined, undefined, holds);
    expect(known?.held).toEqual(shown);
  });

  test('counts no delivery of a message that was accepted while it was disabled as waiting', async () => {
    const made: Made[] = [['success', 5]];
    const { known } = await healthOf([null, null, made, null], 0, undefined, undefined, {}, [1, 2]);
    expect(known).toMatchObject({ backlog: 2, successRate: 1 });
  });

  test('is null for an unknown webhook', async () => {
    expect((await healthOf([])).unknown).toBeNull();
  });

  const PROBE_LATER = '1970-01-01T00:00:01.001Z';
  const PROBE_NOW = '1970-01-01T00:00:01.000Z';
  test.each<[string, string, string | null, () => Promise<number | null>]>([
    ['closed', 'no dispatcher has written an open one', null, () => Promise.resolve(null)],
    ['open', 'its probe is still to come', PROBE_LATER, () => Promise.resolve(1_001)],
    ['half_open', 'the time of its probe is over', PROBE_NOW, () => Promise.resolve(1_000)],
    ['closed', 'Redis is away', null, () => Promise.reject(new Error('away'))],
  ])('shows a circuit as %s when %s', async (circuit, _why, probeAt, readCircuit) => {
    expect((await healthOf([], 0, readCircuit)).known).toMatchObject({ circuit, probeAt });
  });

  test('tells when the newest attempt began', async () => {
    const made: Made[] = [
      ['timeout', 5],
      ['success', 5],
    ];
    const { known } = await healthOf([made, [['success', 5]]]);
    expect(known).toMatchObject({ lastAttemptAt: '1970-01-01T00:00:00.002Z' });
  });

  test('counts attempts, not deliveries', async () => {
    const { known } = await healthOf([
      [
        ['timeout', 15_000],
        ['http_5xx', 30],
        ['success', 20],
      ],
      [['success', 10]],
    ]);
    expect(known).toMatchObject({ successRate: 0.5, latencyMs: { p50: 20, p95: 15_000 } });
  });

  test('has percentiles by nearest rank', async () => {
    const durations = fc.array(fc.nat(20_000), { minLength: 1, maxLength: 50 });
    const holds = fc.asyncProperty(durations, async (all) => {
      const { known } = await healthOf(all.map((durationMs) => [['success', durationMs]]));
      for (const [share, found] of [
        [0.5, known?.latencyMs.p50],
        [0.95, known?.latencyMs.p95],
      ] as const) {
        const noLonger = (ms: number): number => all.filter((each) => each <= ms).length;
        expect(all).toContain(found);
        expect(noLonger(found ?? -1)).toBeGreaterThanOrEqual(share * all.length);
        const shorter = all.filter((each) => each < (found ?? 0)).length;
        expect(shorter).toBeLessThan(share * all.length);
      }
    });
    await fc.assert(holds);
  });

  test('counts as backlog what waits for a retry and what was not attempted yet', async () => {
    const { known } = await healthOf([null, [['timeout', 1]], null, [['success', 1]]], 1);
    expect(known?.backlog).toBe(4);
  });

  test('counts a backlog of at most 10,000', async () => {
    expect((await healthOf([null, null], 20_000)).known?.backlog).toBe(10_000);
  });

  test('reads the newest 200 messages', async () => {
    const made = Array.from({ length: 250 }, (_, n): Made[] => [
      [n < 200 ? 'success' : 'timeout', 1],
    ]);
    expect((await healthOf(made)).known?.successRate).toBe(1);
  });
});
