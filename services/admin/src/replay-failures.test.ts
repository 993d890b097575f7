import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createMemoryResends,
  type MemoryResends,
  sampleResend,
} from '../../../test/support/memory/memory-resends.ts';
import { countingIds } from '../../../test/support/samples/sample-message.ts';
import { createResendLetters, WAYS } from './replay.ts';
import { ReplayReport } from './run-replay.ts';

interface Target {
  disabled: boolean;
  rateLimitPerSecond: number | null;
}

let world: MemoryResends;
let webhook: Target | null;
let report: ReplayReport;

beforeEach(() => {
  world = createMemoryResends();
  webhook = { disabled: false, rateLimitPerSecond: null };
});

async function resend(deliveryIds: readonly string[], isDryRun = false): Promise<void> {
  report = new ReplayReport(WAYS, isDryRun, () => undefined);
  const run = createResendLetters({
    report,
    resends: world.resends,
    marks: world.marks,
    findWebhook: () => Promise.resolve(webhook),
    newId: countingIds(),
    nowMs: () => 5_000,
  });
  const owner = { companyId: 'comp_a', webhookId: 'wh_1' };
  await run(deliveryIds.map((deliveryId, n) => ({ ...owner, letterId: `0:${n}`, deliveryId })));
}

const add = (...ids: string[]): string[] => ids.map((id) => world.add(id, 'exhausted').id);
const stored = () => [...world.running.values()];
const skipped = () => report.tally().skipped;

describe('a replay of failed deliveries', () => {
  test('stores the same resend for one delivery as the API', async () => {
    await resend(add('dlv_1'));
    expect(stored()).toMatchObject([
      { afterId: 'dlv_1', beforeId: 'dlv_1', page: ['dlv_1'], total: 1, status: 'running' },
    ]);
    expect(world.deliveries.get('dlv_1')?.mark).toMatchObject({ attemptNumber: 8, state: 'asked' });
    expect(report.tally()).toMatchObject({ resent: 1, skipped: {} });
  });

  test('stores one resend for several deliveries of a webhook', async () => {
    add('dlv_1', 'dlv_2', 'dlv_3', 'dlv_4');
    await resend(['dlv_3', 'dlv_1']);
    const [only] = stored();
    expect(only).toMatchObject({ page: ['dlv_1', 'dlv_3'], total: 2 });
    const done = { ...sampleResend('rsnd_1'), ...only, afterId: 'dlv_3' };
    expect((await world.resends.nextPage(done, 9)).ids).toEqual([]);
    expect(world.deliveries.get('dlv_2')?.mark).toBeNull();
  });

  test('stores pages, smaller ones under a rate limit', async () => {
    webhook = { disabled: false, rateLimitPerSecond: 2 };
    await resend(add('dlv_1', 'dlv_2', 'dlv_3', 'dlv_4', 'dlv_5'));
    expect(stored().map(({ page }) => page.length)).toEqual([4, 1]);
    expect(report.tally().resent).toBe(5);
  });

  test('skips deliveries whose state has changed, and reports why', async () => {
    world.add('dlv_1', 'delivered');
    world.add('dlv_2', 'pending');
    await resend(['dlv_1', 'dlv_2', 'dlv_3']);
    expect(skipped()).toEqual({ delivered: 1, pending: 1, not_stored: 1 });
    expect(stored()).toEqual([]);
  });

  test('skips deliveries that are being resent, also by an earlier replay', async () => {
    await resend(add('dlv_1'));
    await resend(['dlv_1']);
    expect(skipped()).toEqual({ resend_running: 1 });
    expect(stored()).toHaveLength(1);
  });

  test('frees deliveries that an ended resend left marked', async () => {
    const left = world.add('dlv_1', 'exhausted');
    left.mark = { resendId: 'rsnd_gone', attemptNumber: 8, state: 'asked' };
    await resend(['dlv_1'], true);
    expect(skipped()).toEqual({ resend_running: 1 });
    await resend(['dlv_1']);
    expect(report.tally().resent).toBe(1);
  });

  test('resends a delivery with two letters once', async () => {
    add('dlv_1');
    await resend(['dlv_1', 'dlv_1']);
    expect(report.tally()).toMatchObject({ resent: 1, skipped: { repeated: 1 } });
  });

  test.each<[Target | null, string]>([
    [null, 'webhook_deleted'],
    [{ disabled: true, rateLimitPerSecond: null }, 'webhook_disabled'],
  ])('skips deliveries whose webhook is deleted or disabled: %j', async (target, why) => {
    webhook = target;
    await resend(add('dlv_1', 'dlv_2'));
    expect(skipped()).toEqual({ [why]: 2 });
    expect(stored()).toEqual([]);
  });

  test('skips a delivery that another resend marks at the same time', async () => {
    const delivery = world.add('dlv_1', 'exhausted');
    const { ask } = world.marks;
    world.marks.ask = (own) => {
      delivery.mark = { resendId: 'rsnd_other', attemptNumber: 8, state: 'asked' };
      return ask(own);
    };
    await resend(['dlv_1']);
    expect(skipped()).toEqual({ resend_running: 1 });
    expect(stored()).toEqual([]);
  });

  test('changes nothing in a dry run', async () => {
    await resend(add('dlv_1', 'dlv_2'), true);
    expect(report.tally()).toMatchObject({ resent: 2 });
    expect(stored()).toEqual([]);
    expect(world.deliveries.get('dlv_1')?.mark).toBeNull();
  });
});
