import { beforeEach, expect, test } from '@jest/globals';
import type { WaitingWebhook } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldPlace, WebhookHolders } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createMemoryLeases } from '../../../../test/support/memory/memory-leases.ts';
import { createWaitingSweep } from './sweep-waiting.ts';

const NOW_MS = 1_000_000;
const HOLD = { sinceMs: 1, untilMs: null, reason: null, by: 'key_1' };
const webhook = {
  companyId: 'comp_a',
  appId: 'app_1',
  disabled: false,
  cancelBeforeMs: null,
  rateLimitPerSecond: null,
  held: null,
};
const FREE: WebhookHolders = { webhook, appHeld: null, isSuspended: false };

let waiting: WaitingWebhook[];
let holders: Map<string, WebhookHolders>;
let noted: Set<string>;
let touched: HoldPlace[];
let expiring: number;
let seen: { expired: number; oldestMs: number | null; unreleasedMs: number | null };
let nowMs: number;

beforeEach(() => {
  holders = new Map();
  [waiting, noted, touched, expiring] = [[], new Set(), [], 0];
  seen = { expired: 0, oldestMs: null, unreleasedMs: null };
  nowMs = NOW_MS;
});

function add(webhookId: string, of: WebhookHolders | null = FREE, firstId = 'dlv_1'): void {
  waiting.push({ companyId: 'comp_a', webhookId, firstId });
  if (of) holders.set(webhookId, of);
}

const sweep = (leases = createMemoryLeases()) =>
  createWaitingSweep({
    holder: 'me',
    leases,
    waiting: {
      async *allWebhooks() {
        await Promise.resolve();
        yield* waiting;
      },
      expire(atMs, limit) {
        expect(atMs).toBe(nowMs - 1);
        const some = Math.min(expiring, limit);
        expiring -= some;
        return Promise.resolve(some);
      },
    },
    notes: {
      touch(place) {
        touched.push(place);
        return Promise.resolve();
      },
      hasAny: (ids) => Promise.resolve(ids.some((id) => noted.has(id))),
      oldestMs: () => Promise.resolve(7),
    },
    holds: { holdersOf: () => Promise.resolve(holders) },
    metrics: {
      onExpired: (count) => void (seen.expired += count),
      onOldestHold: (sinceMs) => void (seen.oldestMs = sinceMs),
      onUnreleased: (sinceMs) => void (seen.unreleasedMs = sinceMs),
    },
    nowMs: () => nowMs,
    earlierMs: () => nowMs - 1,
    logger: createLogger('test', 'silent'),
  });

test('gives a note to each webhook whose deliveries wait although nothing holds them', async () => {
  add('wh_free');
  add('wh_deleted', { ...FREE, webhook: null });
  add('wh_disabled', { ...FREE, webhook: { ...webhook, disabled: true, held: HOLD } });
  add('wh_ended', { ...FREE, webhook: { ...webhook, held: { ...HOLD, untilMs: NOW_MS } } });
  await sweep().tick();
  const ids = ['wh_free', 'wh_deleted', 'wh_disabled', 'wh_ended'];
  expect(touched).toEqual(ids.map((id) => ({ id, companyId: 'comp_a', kind: 'webhook' })));
});

test('leaves those alone that are on hold', async () => {
  add('wh_held', { ...FREE, webhook: { ...webhook, held: HOLD } });
  add('wh_app', { ...FREE, appHeld: HOLD });
  add('wh_company', { ...FREE, isSuspended: true });
  await sweep().tick();
  expect(touched).toEqual([]);
});

test.each(['wh_1', 'app_1', 'comp_a'])(
  'leaves those alone that the note of %s covers',
  async (id) => {
    add('wh_1');
    noted.add(id);
    await sweep().tick();
    expect(touched).toEqual([]);
  },
);

test('cancels everything that expires, and counts it', async () => {
  expiring = 2_500;
  await sweep().tick();
  expect([expiring, seen.expired, seen.oldestMs]).toEqual([0, 2_500, 7]);
});

test('does nothing but show the oldest hold while another process sweeps', async () => {
  add('wh_free');
  const leases = createMemoryLeases();
  await leases.hold('waiting-deliveries', 'another');
  await sweep(leases).tick();
  expect([touched, seen.oldestMs]).toEqual([[], 7]);
});

test('shows since when the next delivery of a webhook could be released, with a note or without', async () => {
  add('wh_free');
  add('wh_free', FREE, 'dlv_of_a_later_day');
  add('wh_held', { ...FREE, webhook: { ...webhook, held: HOLD } });
  const { tick } = sweep();
  await tick();
  expect(seen.unreleasedMs).toBe(NOW_MS);
  noted.add('wh_free');
  nowMs += 300_000;
  await tick();
  expect(seen.unreleasedMs).toBe(NOW_MS);
});

test('shows no delivery as unreleased while the release comes to another one, and after its end', async () => {
  add('wh_slow');
  const { tick } = sweep();
  await tick();
  waiting = [];
  add('wh_slow', FREE, 'dlv_2');
  nowMs += 300_000;
  await tick();
  expect(seen.unreleasedMs).toBe(nowMs);
  waiting = [];
  await tick();
  expect(seen.unreleasedMs).toBeNull();
});

test('shows no delivery as unreleased while another process sweeps, and remembers it', async () => {
  add('wh_free');
  const leases = createMemoryLeases();
  const { tick } = sweep(leases);
  await tick();
  await leases.hold('waiting-deliveries', 'another');
  await tick();
  expect(seen.unreleasedMs).toBeNull();
  await leases.release('waiting-deliveries', 'another');
  nowMs += 300_000;
  await tick();
  expect(seen.unreleasedMs).toBe(NOW_MS);
});
