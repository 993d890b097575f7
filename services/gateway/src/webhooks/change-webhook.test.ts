import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { createChangeWebhook } from './change-webhook.ts';

const NOW_MS = 5_000;
const which = { companyId: 'comp_a', webhookId: sampleWebhook(1).id };

let stored: Webhook | null;
let writes: WebhookChanges[];
let announced: Invalidation[];
/** Runs between the read and the write. */
let beforeWrite: () => void;

beforeEach(() => {
  stored = sampleWebhook(1);
  [writes, announced, beforeWrite] = [[], [], () => undefined];
});

type Decide = (seen: Webhook) => WebhookChanges | null;

const change = (decide: Decide, nowMs = NOW_MS) => changer(nowMs)(which, decide);

function changer(nowMs = NOW_MS) {
  const webhooks = {
    findOne: () => Promise.resolve(stored),
    update: (seen: Webhook, changes: WebhookChanges) => {
      beforeWrite();
      if (stored?.updatedAtMs !== seen.updatedAtMs) return Promise.resolve(null);
      writes.push(changes);
      stored = { ...seen, ...changes };
      return Promise.resolve(stored);
    },
  };
  const invalidate = (invalidation: Invalidation) => {
    announced.push(invalidation);
    return Promise.resolve();
  };
  return createChangeWebhook({ webhooks, nowMs: () => nowMs, invalidate });
}

/** Changes the stored webhook `times` times, as other processes would. */
function changeElsewhere(times: number, changes: Partial<Webhook>): void {
  let left = times;
  beforeWrite = () => {
    if (left === 0 || !stored) return;
    left -= 1;
    stored = { ...stored, ...changes, updatedAtMs: stored.updatedAtMs + 1 };
  };
}

describe('a change of a webhook', () => {
  test('is written with its time, and announced for the webhook and its app', async () => {
    const changed = await change(() => ({ name: 'New' }));
    const before = sampleWebhook(1);
    expect(changed).toEqual({ before, after: { ...before, name: 'New', updatedAtMs: NOW_MS } });
    expect(announced.map(({ id }) => id)).toEqual([which.webhookId, 'app_1']);
  });

  test('of a global webhook is announced for the webhook only', async () => {
    stored = sampleWebhook(1, { appId: null, environmentId: 'live' });
    await change(() => ({ name: 'New' }));
    expect(announced).toEqual([{ companyId: 'comp_a', id: which.webhookId }]);
  });

  test('that decides on nothing writes and announces nothing', async () => {
    const webhook = sampleWebhook(1);
    expect(await change(() => null)).toEqual({ before: webhook, after: webhook });
    expect([writes, announced]).toEqual([[], []]);
  });

  test('gets a later time, even within one millisecond and when the clock was set back', async () => {
    for (const nowMs of [NOW_MS, NOW_MS, 1, 2_500]) await change(() => ({ name: 'New' }), nowMs);
    const times = writes.map(({ updatedAtMs }) => updatedAtMs);
    expect(times).toEqual([5_000, 5_001, 5_002, 5_003]);
  });

  test('is decided again after a faster one, and loses nothing of it', async () => {
    changeElsewhere(3, { url: 'https://example.com/rival' });
    const seenUrls: string[] = [];
    const { before, after } = await change((seen) => {
      seenUrls.push(seen.url);
      return { name: 'New' };
    });
    const { name, url } = sampleWebhook(1);
    expect(before).toMatchObject({ name, url: 'https://example.com/rival' });
    expect(after).toMatchObject({ name: 'New', url: 'https://example.com/rival' });
    expect(seenUrls).toEqual([url, ...Array<string>(3).fill(after.url)]);
    expect(writes).toHaveLength(1);
  });

  test('throws 404 for an unknown webhook, and for one that is deleted in between', async () => {
    beforeWrite = () => {
      stored = null;
    };
    const failure = { status: 404, code: 'not_found' };
    await expect(change(() => ({ name: 'New' }))).rejects.toMatchObject(failure);
    await expect(change(() => ({ name: 'New' }))).rejects.toMatchObject(failure);
    expect(announced).toEqual([]);
  });

  test('throws 503 when others are always faster', async () => {
    changeElsewhere(1_000, {});
    await expect(change(() => ({ name: 'New' }))).rejects.toMatchObject({ status: 503 });
    expect([writes, announced]).toEqual([[], []]);
  });

  test('writes nothing when `decide` throws', async () => {
    const refusal = new Error('400');
    await expect(
      change(() => {
        throw refusal;
      }),
    ).rejects.toBe(refusal);
    expect(writes).toEqual([]);
  });

  test('waits for others in its process, so that none of them fails', async () => {
    const changeOne = changer();
    let decisions = 0;
    const rename = (n: number) => () => {
      decisions += 1;
      return { name: `Name ${n}` };
    };
    await Promise.all(Array.from({ length: 30 }, (_, n) => changeOne(which, rename(n))));
    expect([decisions, writes.length, stored?.name]).toEqual([30, 30, 'Name 29']);
  });
});
