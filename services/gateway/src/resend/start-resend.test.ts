import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Delivery, DeliveryStatus, Outcome } from '@posthorn/domain/delivery/delivery.ts';
import { deliveryIdOf, firstIdAt, type IdPrefix, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import {
  createMemoryResends,
  type MemoryResends,
} from '../../../../test/support/memory/memory-resends.ts';
import {
  createMemoryReplays,
  type MemoryReplays,
} from '../../../../test/support/memory/memory-replays.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { createStartResend, resendDelivery, type StartResend } from './start-resend.ts';

const NOW_MS = 1_700_000_100_000;

let world: MemoryResends;
let webhook: Webhook | null;
let wakes: number;
let hasApp: boolean;
let startResend: StartResend;
let newId: (prefix: IdPrefix) => string;
let missed: MemoryReplays;

beforeEach(() => {
  [world, webhook, wakes, hasApp] = [createMemoryResends(), sampleWebhook(1), 0, true];
  newId = countingIds();
  missed = createMemoryReplays();
  startResend = createStartResend({
    webhooks: { findOne: () => Promise.resolve(webhook) },
    apps: { has: () => Promise.resolve(hasApp) },
    resends: world.resends,
    marks: world.marks,
    replays: missed.replays,
    wake() {
      wakes += 1;
    },
    nowMs: () => NOW_MS,
    dueNowMs: () => NOW_MS,
  });
});

/** As the API has read it; it is stored with this status, or as `storedAs`. */
function delivery(
  status: DeliveryStatus,
  storedAs: DeliveryStatus | null = status,
  id = 'dlv_1',
): Delivery {
  if (storedAs) world.add(id, storedAs);
  return {
    id,
    messageId: `msg_${id}`,
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: null,
    status,
    reason: null,
    attemptCount: 0,
    attempts: [],
    nextAttemptAtMs: null,
    waiting: null,
    waitingSinceMs: null,
    createdAtMs: 1,
    updatedAtMs: 1,
  };
}

const ofDelivery = (resent: Delivery) => startResend.ofDelivery(resent, newId('rsnd'));

const conflict = (code: string) => ({ status: 409, code });

describe('the resend of one delivery', () => {
  test.each(['delivered', 'exhausted', 'cancelled'] as const)(
    'is stored and marked before it is sent: %s',
    async (status) => {
      await ofDelivery(delivery(status));
      const [resend] = world.running.values();
      expect(resend).toMatchObject({ page: ['dlv_1'], total: 1, status: 'running' });
      expect([...world.running.values()]).toEqual([resend]);
      expect(world.deliveries.get('dlv_1')?.mark).toEqual({
        resendId: resend?.id,
        attemptNumber: 8,
        state: 'asked',
      });
    },
  );

  test.each<[string, () => Delivery, Partial<Webhook> | null, string]>([
    ['it is pending', () => delivery('pending'), {}, 'delivery_pending'],
    ['it has no document yet', () => delivery('cancelled', null), {}, 'delivery_pending'],
    ['its webhook was deleted', () => delivery('exhausted'), null, 'webhook_deleted'],
    ['it is disabled', () => delivery('exhausted'), { disabled: true }, 'webhook_disabled'],
  ])('is refused with 409 and stores nothing when %s', async (_what, of, changes, code) => {
    webhook = changes && sampleWebhook(1, changes);
    await expect(ofDelivery(of())).rejects.toMatchObject(conflict(code));
    expect([wakes, world.running.size]).toEqual([0, 0]);
    expect(world.deliveries.get('dlv_1')?.mark ?? null).toBeNull();
  });

  test('is refused with 409 while another one runs, and allowed after it', async () => {
    const one = delivery('exhausted');
    await ofDelivery(one);
    await expect(ofDelivery(one)).rejects.toMatchObject(conflict('resend_running'));
    expect([wakes, world.running.size]).toEqual([1, 1]);
    world.settle('dlv_1', false);
    await ofDelivery(one);
    expect(world.deliveries.get('dlv_1')?.mark).toMatchObject({ attemptNumber: 9 });
  });

  test('is started once by nine requests at the same time', async () => {
    const one = delivery('exhausted');
    const asked = await Promise.allSettled(Array.from({ length: 9 }, () => ofDelivery(one)));
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect([wakes, world.running.size]).toEqual([1, 1]);
  });
});

describe('the resend of a delivery that was cancelled with all others of its webhook', () => {
  const deliveryId = deliveryIdOf(`${firstIdAt('msg', 1)}${'0'.repeat(16)}`, 'wh_1');

  const resend = (read: Delivery) =>
    resendDelivery(
      {
        messages: {
          findOne: () => Promise.resolve(null),
          outlinesAt: () => ({ [Symbol.asyncIterator]: () => [].values() as never }),
        },
        deliveries: { findMany: () => Promise.resolve([read]) },
        webhooks: {
          findOne: () => Promise.resolve(null),
          cancelBeforeOf: () => Promise.resolve(new Map([['wh_1', 2]])),
        },
        deliveryStore: {
          insertAll: () => Promise.resolve(new Set([deliveryId])),
          cancelPending(cancelled) {
            for (const { id } of cancelled) {
              const found = world.deliveries.get(id);
              if (found?.status === 'pending') found.status = 'cancelled';
            }
            return Promise.resolve({ matched: cancelled.length });
          },
        },
        startResend,
        nextSlice: () => Promise.resolve(),
        nowMs: () => NOW_MS,
      },
      { companyId: 'comp_a', deliveryId, id: newId('rsnd') },
    );

  test('begins at once, while it is stored as pending', async () => {
    await resend(delivery('pending', 'pending', deliveryId));
    const [begun] = world.running.values();
    expect([wakes, begun?.page]).toEqual([1, [deliveryId]]);
    expect(world.deliveries.get(deliveryId)).toMatchObject({
      status: 'cancelled',
      mark: { resendId: begun?.id, state: 'asked' },
    });
  });

  test('is refused for one that was created later, which is pending', async () => {
    const later = { ...delivery('pending', 'pending', deliveryId), createdAtMs: 2 };
    await expect(resend(later)).rejects.toMatchObject(conflict('delivery_pending'));
    expect(world.deliveries.get(deliveryId)).toMatchObject({ status: 'pending', mark: null });
  });
});

describe('the resend of what failed at a webhook', () => {
  const atMs = (ms: number): string => {
    const id = deliveryIdOf(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`, 'wh_1');
    world.add(id, 'exhausted');
    return id;
  };
  const failed = (
    sinceMs: number,
    untilMs: number | null,
    outcome: Outcome | null = null,
    id = newId('rsnd'),
  ) =>
    startResend.ofWebhook({
      companyId: 'comp_a',
      id,
      webhookId: 'wh_1',
      sinceMs,
      untilMs,
      outcome,
    });

  test('may be limited to one outcome, and counts all that failed until it has ended', async () => {
    const [timedOut] = [1_000, 2_000].map(atMs);
    const first = world.deliveries.get(String(timedOut));
    if (first) first.lastOutcome = 'timeout';
    const resend = await failed(1_000, 2_000, 'timeout');
    expect(resend).toMatchObject({ total: 2, outcome: 'timeout' });
    expect((await world.resends.nextPage(resend, 9)).ids).toEqual([timedOut]);
  });

  test('includes both ends of the span, to the millisecond', async () => {
    const [before, first, last, after] = [999, 1_000, 2_000, 2_001].map(atMs);
    const resend = await failed(1_000, 2_000);
    expect(resend).toMatchObject({
      total: 2,
      status: 'running',
      succeeded: 0,
      failed: 0,
      page: [],
    });
    expect((await world.resends.nextPage(resend, 9)).ids).toEqual([first, last]);
    expect(timeMsOf(String(before))).toBe(999);
    expect(timeMsOf(String(after))).toBe(2_001);
  });

  test('ends now when no end is given', async () => {
    atMs(NOW_MS);
    atMs(NOW_MS + 1);
    expect(await failed(1_000, null)).toMatchObject({ total: 1 });
  });

  test('is counted beforehand, and nothing is stored', async () => {
    atMs(999);
    atMs(1_000);
    const counted = { companyId: 'comp_a', webhookId: 'wh_1', sinceMs: 1_000, untilMs: null };
    expect(await startResend.countOfWebhook(counted)).toBe(1);
    expect([wakes, world.running.size]).toEqual([0, 0]);
    webhook = null;
    await expect(startResend.countOfWebhook(counted)).rejects.toMatchObject({ status: 404 });
  });

  test('is stored before it is started', async () => {
    const resend = await failed(1_000, null);
    expect([wakes, ...world.running.values()]).toEqual([1, resend]);
    expect(world.running.get(resend.id)).toEqual(resend);
  });

  test('marks nothing: each page is marked when it is sent', async () => {
    const id = atMs(1_000);
    await failed(1, null);
    expect(world.deliveries.get(id)?.mark).toBeNull();
  });

  test('is refused for an unknown and for a disabled webhook', async () => {
    webhook = null;
    await expect(failed(1, null)).rejects.toMatchObject({ status: 404, code: 'not_found' });
    webhook = sampleWebhook(1, { disabled: true });
    await expect(failed(1, null)).rejects.toMatchObject(conflict('webhook_disabled'));
    expect([wakes, world.running.size]).toEqual([0, 0]);
  });

  test('is not started again by a repeat with its id', async () => {
    atMs(5_000);
    const first = await failed(1, null, null, 'rsnd_own');
    expect(await failed(1, null, null, 'rsnd_own')).toMatchObject({ id: first.id });
    expect(wakes).toBe(1);
  });

  test('runs beside the resend of one of its deliveries', async () => {
    await ofDelivery(delivery('exhausted', 'exhausted', atMs(5_000)));
    expect(await failed(1, null)).toMatchObject({ total: 1 });
  });
});

describe('the resend of what failed at an app', () => {
  const ofApp = (appId = 'app_1') =>
    startResend.ofApp({ companyId: 'comp_a', id: newId('rsnd'), appId, sinceMs: 0, untilMs: null });

  test('counts the failures of enabled webhooks and is stored before it is started', async () => {
    const messageId = `${firstIdAt('msg', 1_000)}${'0'.repeat(16)}`;
    for (const webhookId of ['wh_1', 'wh_2', 'wh_off']) {
      world.add(deliveryIdOf(messageId, webhookId), 'exhausted', 7, webhookId);
    }
    for (const webhookId of ['wh_1', 'wh_2']) world.webhooks.add(webhookId);
    const counted = { companyId: 'comp_a', appId: 'app_1', sinceMs: 0, untilMs: null };
    expect(await startResend.countOfApp(counted)).toBe(2);
    const resend = await ofApp();
    expect(resend).toMatchObject({ appId: 'app_1', webhookId: null, total: 2, status: 'running' });
    expect([wakes, ...world.running.values()]).toEqual([1, resend]);
    expect(world.running.get(resend.id)).toEqual(resend);
  });

  test('is refused for an unknown app', async () => {
    hasApp = false;
    await expect(ofApp()).rejects.toMatchObject({ status: 404, code: 'not_found' });
    const counted = { companyId: 'comp_a', appId: 'app_1', sinceMs: 0, untilMs: null };
    await expect(startResend.countOfApp(counted)).rejects.toMatchObject({ status: 404 });
    expect([wakes, world.running.size]).toEqual([0, 0]);
  });

  test('is refused with 409 while another one of the app runs, and allowed after it', async () => {
    const first = await ofApp();
    await expect(ofApp()).rejects.toMatchObject(conflict('resend_running'));
    await ofApp('app_2');
    await world.resends.finish(first, NOW_MS);
    await ofApp();
    expect(wakes).toBe(3);
  });
});

describe('the replay of what a webhook has missed', () => {
  const idAt = (ms: number): string => `${firstIdAt('msg', ms)}${'0'.repeat(16)}`;
  const nextSlice = (): Promise<void> => Promise.resolve();
  const asked = (eventTypes: string[] = []) => {
    const span = { companyId: 'comp_a', sinceMs: 1_000, untilMs: 3_000 };
    return { ...span, webhookId: 'wh_1', eventTypes, nextSlice };
  };

  beforeEach(() => {
    webhook = sampleWebhook(1, { eventTypes: ['order.paid', 'order.sent'] });
    for (const [ms, eventType] of [
      [999, 'order.paid'],
      [1_000, 'order.paid'],
      [2_000, 'order.sent'],
      [3_000, 'order.lost'],
      [3_001, 'order.paid'],
    ] as const) {
      missed.messages.push({ id: idAt(ms), eventType, targets: ['wh_2'] });
    }
  });

  test('is counted, and stored before it is started', async () => {
    expect(await startResend.countOfMissing(asked())).toBe(2);
    missed.messages.push({
      id: idAt(2_500),
      eventType: 'order.paid',
      targets: ['wh_2'],
      isErased: true,
    });
    expect(await startResend.countOfMissing(asked())).toBe(2);
    expect(await startResend.countOfMissing(asked(['order.sent', 'order.lost']))).toBe(1);
    const replay = await startResend.ofMissing({ ...asked(['order.paid']), id: 'rsnd_1' });
    const expected = { kind: 'replay', total: 1, eventTypes: ['order.paid'], status: 'running' };
    expect(replay).toMatchObject(expected);
    expect([wakes, ...world.running.values()]).toEqual([1, replay]);
    expect(world.running.get('rsnd_1')).toEqual(replay);
  });

  test('is refused for an unknown, a global and a disabled webhook, and beside another one', async () => {
    const start = (id: string) => startResend.ofMissing({ ...asked(), id });
    webhook = null;
    await expect(start('rsnd_1')).rejects.toMatchObject({ status: 404 });
    webhook = sampleWebhook(1, { appId: null });
    await expect(start('rsnd_1')).rejects.toMatchObject({ status: 400 });
    webhook = sampleWebhook(1, { disabled: true });
    await expect(start('rsnd_1')).rejects.toMatchObject(conflict('webhook_disabled'));
    webhook = sampleWebhook(1);
    await start('rsnd_1');
    await expect(start('rsnd_2')).rejects.toMatchObject(conflict('resend_running'));
    expect(await start('rsnd_1')).toMatchObject({ id: 'rsnd_1' });
    expect(wakes).toBe(1);
  });
});
