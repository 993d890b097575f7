import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Delivery, DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { Resend } from '@posthorn/platform/mongo/resends/resends.ts';
import {
  createMemoryResends,
  type MemoryResends,
} from '../../../../test/support/memory/memory-resends.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { createStartResend, type StartResend } from './start-resend.ts';

const NOW_MS = 1_700_000_100_000;

let world: MemoryResends;
let webhook: Webhook | null;
let woken: Resend[];
let hasApp: boolean;
let startResend: StartResend;

beforeEach(() => {
  [world, webhook, woken, hasApp] = [createMemoryResends(), sampleWebhook(1), [], true];
  startResend = createStartResend({
    webhooks: { findOne: () => Promise.resolve(webhook) },
    hasApp: () => Promise.resolve(hasApp),
    resends: world.resends,
    marks: world.marks,
    wake: (resend) => woken.push(resend),
    newId: countingIds(),
    nowMs: () => NOW_MS,
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
    createdAtMs: 1,
    updatedAtMs: 1,
  };
}

const conflict = (code: string) => ({ status: 409, code });

describe('the resend of one delivery', () => {
  test.each(['delivered', 'exhausted', 'cancelled'] as const)(
    'is noted and marked before it is sent: %s',
    async (status) => {
      await startResend.one(delivery(status));
      const [resend] = woken;
      expect(resend).toMatchObject({ page: ['dlv_1'], total: 1, status: 'running' });
      expect([...world.running.values()]).toEqual([resend]);
      expect(world.deliveries.get('dlv_1')?.mark).toEqual({
        resendId: resend?._id,
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
  ])('is refused with 409 and leaves nothing behind when %s', async (_what, of, changes, code) => {
    webhook = changes && sampleWebhook(1, changes);
    await expect(startResend.one(of())).rejects.toMatchObject(conflict(code));
    expect([woken, world.running.size]).toEqual([[], 0]);
    expect(world.deliveries.get('dlv_1')?.mark ?? null).toBeNull();
  });

  test('is refused with 409 while another one runs, and allowed again behind it', async () => {
    const one = delivery('exhausted');
    await startResend.one(one);
    await expect(startResend.one(one)).rejects.toMatchObject(conflict('resend_running'));
    expect([woken.length, world.running.size]).toEqual([1, 1]);
    world.settle('dlv_1', false);
    await startResend.one(one);
    expect(world.deliveries.get('dlv_1')?.mark).toMatchObject({ attemptNumber: 9 });
  });

  test('is made once of many that ask at the same time', async () => {
    const one = delivery('exhausted');
    const asked = await Promise.allSettled(Array.from({ length: 9 }, () => startResend.one(one)));
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect([woken.length, world.running.size]).toEqual([1, 1]);
  });
});

describe('the resend of what failed in a span', () => {
  const atMs = (ms: number): string => {
    const id = deliveryIdOf(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`, 'wh_1');
    world.add(id, 'exhausted');
    return id;
  };
  const failed = (sinceMs: number, untilMs: number | null) =>
    startResend.failed({ companyId: 'comp_a', webhookId: 'wh_1', sinceMs, untilMs });

  test('includes both ends, to the millisecond', async () => {
    const [before, first, last, behind] = [999, 1_000, 2_000, 2_001].map(atMs);
    const resend = await failed(1_000, 2_000);
    expect(resend).toMatchObject({
      total: 2,
      status: 'running',
      succeeded: 0,
      failed: 0,
      page: [],
    });
    expect(await world.resends.nextPage(resend, 9)).toEqual([first, last]);
    expect(timeMsOf(String(before))).toBe(999);
    expect(timeMsOf(String(behind))).toBe(2_001);
  });

  test('goes up to now when no end was given', async () => {
    atMs(NOW_MS);
    atMs(NOW_MS + 1);
    expect(await failed(1_000, null)).toMatchObject({ total: 1 });
  });

  test('is stored before it is begun', async () => {
    const resend = await failed(1_000, null);
    expect(woken).toEqual([resend]);
    expect(world.running.get(resend._id)).toEqual(resend);
  });

  test('marks nothing: a page is marked when its turn comes', async () => {
    const id = atMs(1_000);
    await failed(1, null);
    expect(world.deliveries.get(id)?.mark).toBeNull();
  });

  test('is refused without such a webhook and when it is disabled', async () => {
    webhook = null;
    await expect(failed(1, null)).rejects.toMatchObject({ status: 404, code: 'not_found' });
    webhook = sampleWebhook(1, { disabled: true });
    await expect(failed(1, null)).rejects.toMatchObject(conflict('webhook_disabled'));
    expect([woken, world.running.size]).toEqual([[], 0]);
  });

  test('runs beside the resend of one delivery in it', async () => {
    await startResend.one(delivery('exhausted', 'exhausted', atMs(5_000)));
    expect(await failed(1, null)).toMatchObject({ total: 1 });
  });
});

describe('the resend of what failed of an app', () => {
  const ofApp = (appId = 'app_1') =>
    startResend.failedOfApp({ companyId: 'comp_a', appId, sinceMs: 0, untilMs: null });

  test('counts what its enabled webhooks have, and is stored before it is begun', async () => {
    const messageId = `${firstIdAt('msg', 1_000)}${'0'.repeat(16)}`;
    for (const webhookId of ['wh_1', 'wh_2', 'wh_off']) {
      world.add(deliveryIdOf(messageId, webhookId), 'exhausted', 7, webhookId);
    }
    for (const webhookId of ['wh_1', 'wh_2']) world.webhooks.add(webhookId);
    const resend = await ofApp();
    expect(resend).toMatchObject({ appId: 'app_1', webhookId: null, total: 2, status: 'running' });
    expect(woken).toEqual([resend]);
    expect(world.running.get(resend._id)).toEqual(resend);
  });

  test('is refused without such an app', async () => {
    hasApp = false;
    await expect(ofApp()).rejects.toMatchObject({ status: 404, code: 'not_found' });
    expect([woken, world.running.size]).toEqual([[], 0]);
  });

  test('is refused with 409 while another one of the app runs, and allowed behind it', async () => {
    const first = await ofApp();
    await expect(ofApp()).rejects.toMatchObject(conflict('resend_running'));
    await ofApp('app_2');
    await world.resends.finish(first, NOW_MS);
    await ofApp();
    expect(woken).toHaveLength(3);
  });
});
