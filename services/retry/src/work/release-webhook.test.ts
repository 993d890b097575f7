import { beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import {
  createMemoryWaiting,
  type MemoryWaiting,
} from '../../../../test/support/memory/memory-waiting.ts';
import { createPageBudget } from './page-budget.ts';
import { type Released, releaseWebhook } from './release-webhook.ts';

const NOW_MS = 1_000_000;
const WEBHOOK = { companyId: 'comp_a', webhookId: 'wh_1' };
const FOLLOWERS = 2_500;

let memory: MemoryWaiting;
let [pages, published] = [0, 0];

beforeEach(() => {
  [pages, published] = [0, 0];
  memory = createMemoryWaiting();
  for (let n = 0; n < FOLLOWERS; n += 1) {
    const id = `dlv_${String(n).padStart(6, '0')}`;
    const times = { createdAtMs: 1, waitingSinceMs: 1, dueAtMs: 1 };
    const place = { orderingKey: 'order-1', position: n };
    const ref = { ...WEBHOOK, messageId: `msg_${n}`, appId: null, attemptCount: 0 };
    memory.deliveries.set(id, { id, ...ref, ...times, ...place, state: 'follows' });
  }
});

/** The circuit of the endpoint is open. */
function release(disabled: boolean): Promise<Released> {
  const stored = { disabled, cancelBeforeMs: null, rateLimitPerSecond: null, held: null };
  memory.webhooks.set(WEBHOOK.webhookId, { appId: null, ...stored });
  const { waiting, holds, deliveries } = memory;
  return releaseWebhook(
    {
      waiting,
      holds,
      notes: { rateOf: () => Promise.resolve(null) },
      deliveries: {
        cancelPending(cancelled) {
          pages += 1;
          for (const { id } of cancelled)
            Object.assign(deliveries.get(id) ?? {}, { state: 'cancelled' });
          return Promise.resolve({ matched: cancelled.length });
        },
      },
      sequences: { makeDue: () => Promise.resolve() },
      circuits: { read: () => Promise.resolve(NOW_MS + 60_000) },
      records: { publish: ({ length }) => Promise.resolve(void (published += length)) },
      retryDueTopic: 'due',
      pageBudget: createPageBudget(16_777_216),
      count: () => undefined,
      logger: createLogger('test', 'silent'),
      nowMs: () => NOW_MS,
      earlierMs: () => NOW_MS,
      sleep: () => Promise.resolve(),
    },
    { webhook: WEBHOOK, isWanted: () => false, signal: new AbortController().signal },
  );
}

const countIn = (state: 'follows' | 'cancelled'): number =>
  memory.ofWebhook(WEBHOOK.webhookId, state).length;

describe('deliveries that wait for their order', () => {
  test('are cancelled in pages when their webhook is disabled, although its circuit is open', async () => {
    expect(await release(true)).toBe('done');
    expect([countIn('cancelled'), published]).toEqual([FOLLOWERS, 0]);
    expect(pages).toBeLessThan(6);
  });

  test('are left to the order otherwise', async () => {
    expect(await release(false)).toBe('nothing');
    expect([countIn('follows'), published]).toEqual([FOLLOWERS, 0]);
  });
});
