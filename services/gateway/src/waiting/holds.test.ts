import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Hold } from '@posthorn/domain/waiting.ts';
import type { HoldNotes } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createHolds } from './holds.ts';

const NOW_MS = 1_000_000;
const HOLD: Hold = { sinceMs: 1, untilMs: null, reason: null, by: 'key_1' };
const webhook = {
  id: 'wh_1',
  companyId: 'comp_a',
  appId: 'app_1',
  held: null,
  ordering: 'none' as const,
};

/** Ids of what has a note. */
let noted: Set<string>;
let touches: Parameters<HoldNotes['touch']>[];

beforeEach(() => {
  [noted, touches] = [new Set(), []];
});

const notUsed = (): never => {
  throw new Error('not used here');
};

const holds = () =>
  createHolds({
    notes: {
      touch(...args) {
        touches.push(args);
        return Promise.resolve();
      },
      hasAny: (ids) => Promise.resolve(ids.some((id) => noted.has(id))),
    },
    waiting: { count: () => Promise.resolve(0) },
    changeWebhook: notUsed,
    apps: { get: notUsed, setHeld: notUsed },
    wake: () => undefined,
    retentionMs: () => 0,
    nowMs: () => NOW_MS,
  });

describe('a webhook that is disabled or enabled', () => {
  test('gets no note where nothing is on hold, or was in the last minute', async () => {
    noted.add('wh_2').add('app_2');
    await holds().onDisabledOrEnabled(webhook);
    await holds().onDisabledOrEnabled({ ...webhook, appId: null });
    expect(touches).toEqual([]);
  });

  test.each(['wh_1', 'app_1', 'comp_a'])('is looked at now when %s has a note', async (id) => {
    noted.add(id);
    await holds().onDisabledOrEnabled(webhook);
    const place = { id: 'wh_1', companyId: 'comp_a', kind: 'webhook' };
    expect(touches).toEqual([[place, { atMs: NOW_MS, dueAtMs: NOW_MS - 1_000 }]]);
  });

  test('gets a note while it is on hold: that of the hold went while it was disabled', async () => {
    await holds().onDisabledOrEnabled({ ...webhook, held: HOLD });
    expect(touches).toHaveLength(1);
  });

  test('gets a note when its deliveries have an order: some may wait for earlier ones', async () => {
    await holds().onDisabledOrEnabled({ ...webhook, ordering: 'skip' });
    expect(touches).toHaveLength(1);
  });
});

test('a webhook whose order is changed is looked at now, whatever it was before', async () => {
  await holds().onOrderingChanged(webhook);
  const place = { id: 'wh_1', companyId: 'comp_a', kind: 'webhook' };
  expect(touches).toEqual([[place, { atMs: NOW_MS, dueAtMs: NOW_MS - 1_000 }]]);
});
