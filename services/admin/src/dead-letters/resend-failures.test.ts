import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createMemoryResends,
  sampleResend,
  type MemoryResends,
} from '../../../../test/support/memory/memory-resends.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { createReplayBook, type ReplayBook } from './replay-tally.ts';
import { createResendFailures } from './resend-failures.ts';

interface Target {
  disabled: boolean;
  rateLimitPerSecond: number | null;
}

let world: MemoryResends;
let webhook: Target | null;
let book: ReplayBook;

beforeEach(() => {
  world = createMemoryResends();
  webhook = { disabled: false, rateLimitPerSecond: null };
});

async function resend(deliveryIds: readonly string[], isDryRun = false): Promise<void> {
  book = createReplayBook(isDryRun, () => undefined);
  const run = createResendFailures({
    isDryRun,
    book,
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
const skipped = () => book.tally().skipped;

describe('a replay of failed deliveries', () => {
  test('of one is what the API makes of the resend of one delivery', async () => {
    await resend(add('dlv_1'));
    expect(stored()).toMatchObject([
      { afterId: 'dlv_1', beforeId: 'dlv_1', page: ['dlv_1'], total: 1, status: 'running' },
    ]);
    expect(world.deliveries.get('dlv_1')?.mark).toMatchObject({ attemptNumber: 8, state: 'asked' });
    expect(book.tally()).toMatchObject({ resent: 1, skipped: {} });
  });

  test('of several of a webhook is one resend that names them and nothing else', async () => {
    add('dlv_1', 'dlv_2', 'dlv_3', 'dlv_4');
    await resend(['dlv_3', 'dlv_1']);
    const [only] = stored();
    expect(only).toMatchObject({ page: ['dlv_1', 'dlv_3'], total: 2 });
    const done = { ...sampleResend('rsnd_1'), ...only, afterId: 'dlv_3' };
    expect(await world.resends.nextPage(done, 9)).toEqual([]);
    expect(world.deliveries.get('dlv_2')?.mark).toBeNull();
  });

  test('is cut into pages, and into smaller ones under a rate limit', async () => {
    webhook = { disabled: false, rateLimitPerSecond: 2 };
    await resend(add('dlv_1', 'dlv_2', 'dlv_3', 'dlv_4', 'dlv_5'));
    expect(stored().map(({ page }) => page.length)).toEqual([4, 1]);
    expect(book.tally().resent).toBe(5);
  });

  test('skips what has moved on, and says why', async () => {
    world.add('dlv_1', 'delivered');
    world.add('dlv_2', 'pending');
    await resend(['dlv_1', 'dlv_2', 'dlv_3']);
    expect(skipped()).toEqual({ delivered: 1, pending: 1, not_stored: 1 });
    expect(stored()).toEqual([]);
  });

  test('skips what is being resent, also by the replay before it', async () => {
    await resend(add('dlv_1'));
    await resend(['dlv_1']);
    expect(skipped()).toEqual({ resend_running: 1 });
    expect(stored()).toHaveLength(1);
  });

  test('frees what a resend that is over has left marked', async () => {
    const left = world.add('dlv_1', 'exhausted');
    left.mark = { resendId: 'rsnd_gone', attemptNumber: 8, state: 'asked' };
    await resend(['dlv_1'], true);
    expect(skipped()).toEqual({ resend_running: 1 });
    await resend(['dlv_1']);
    expect(book.tally().resent).toBe(1);
  });

  test('asks once for a delivery that has two letters', async () => {
    add('dlv_1');
    await resend(['dlv_1', 'dlv_1']);
    expect(book.tally()).toMatchObject({ resent: 1, skipped: { repeated: 1 } });
  });

  test.each<[Target | null, string]>([
    [null, 'webhook_deleted'],
    [{ disabled: true, rateLimitPerSecond: null }, 'webhook_disabled'],
  ])('skips what has nowhere to go: %j', async (target, why) => {
    webhook = target;
    await resend(add('dlv_1', 'dlv_2'));
    expect(skipped()).toEqual({ [why]: 2 });
    expect(stored()).toEqual([]);
  });

  test('gives way to a resend that takes the delivery at the same moment', async () => {
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
    expect(book.tally()).toMatchObject({ resent: 2 });
    expect(stored()).toEqual([]);
    expect(world.deliveries.get('dlv_1')?.mark).toBeNull();
  });
});
