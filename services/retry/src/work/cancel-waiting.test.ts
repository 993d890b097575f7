import { expect, test } from '@jest/globals';
import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import { cancelWaiting, type CancelWaitingDeps } from './cancel-waiting.ts';

const NOW_MS = 1_000_000;

test('What stands behind a cancelled delivery is looked at, once for each key, whatever stops the process in between', async () => {
  const done: unknown[] = [];
  const deps: CancelWaitingDeps = {
    sequences: {
      makeDue(ids, dueAtMs) {
        done.push({ ids, dueAtMs });
        return Promise.resolve();
      },
    },
    deliveries: {
      cancelPending(some) {
        done.push(some.map(({ id, reason }) => `${id} ${reason}`));
        return Promise.resolve({ matched: 2 });
      },
    },
    nowMs: () => NOW_MS,
  };
  const ref = { messageId: 'msg_1', webhookId: 'wh_1', companyId: 'comp_a', appId: null };
  const wait = { createdAtMs: 1, attemptCount: 0, waitingSinceMs: 1, dueAtMs: 1 };
  const waiting = (id: string, orderingKey?: string) => ({
    ...ref,
    ...wait,
    id,
    ...(orderingKey !== undefined && { orderingKey, position: 1 }),
  });
  const page = [waiting('dlv_1', 'order-1'), waiting('dlv_2'), waiting('dlv_3', 'order-1')];
  expect(await cancelWaiting(deps, page, () => 'expired')).toBe(2);
  expect(done).toEqual([
    { ids: [sequenceIdOf('wh_1', 'order-1')], dueAtMs: NOW_MS + 1_000 },
    ['dlv_1 expired', 'dlv_2 expired', 'dlv_3 expired'],
  ]);
});
