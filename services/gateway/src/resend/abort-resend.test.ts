import { beforeEach, describe, expect, test } from '@jest/globals';
import { decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createMemoryLeases } from '../../../../test/support/memory/memory-leases.ts';
import {
  createMemoryResends,
  sampleResend,
  type MemoryResends,
} from '../../../../test/support/memory/memory-resends.ts';
import { createPageBudget } from './pages/resend-page-budget.ts';
import { createResendRunner } from './run-resends.ts';

let world: MemoryResends;
/** Ids of the deliveries that were published, in order. */
let sent: string[];
/** Called for every delivery that is published. */
let dispatch: (deliveryId: string) => void;
let nowMs: number;

beforeEach(() => {
  [world, sent, nowMs] = [createMemoryResends(), [], 1_000];
  dispatch = (id) => {
    world.settle(id, true);
  };
});

async function run(): Promise<void> {
  const runner = createResendRunner({
    pageBudget: createPageBudget(16_777_216),
    holder: 'a',
    resends: world.resends,
    marks: world.marks,
    leases: createMemoryLeases(),
    retryDueTopic: 'due',
    rateLimitOf: () => Promise.resolve(1),
    circuits: { read: () => Promise.resolve(null) },
    isSuspended: () => Promise.resolve(false),
    records: { publish },
    nowMs: () => nowMs,
    logger: createLogger('test', 'silent'),
  });
  await runner.tick();
  await runner.idle();
}

function publish(records: readonly OutgoingRecord[]): Promise<void> {
  for (const { value } of records) {
    const id = decodeRetryDue(value).messageId.slice('msg_'.length);
    sent.push(id);
    dispatch(id);
  }
  return Promise.resolve();
}

const IDS = ['dlv_1', 'dlv_2', 'dlv_3', 'dlv_4', 'dlv_5'];
const abort = (): void => void world.resends.askToAbort('comp_a', 'rsnd_1', nowMs);
const stateOf = (id = 'rsnd_1') => world.running.get(id);

describe('a resend that a client aborts', () => {
  test('sends no further page, and counts the one under way', async () => {
    for (const id of IDS) world.add(id, 'exhausted');
    await world.resends.insert(sampleResend('rsnd_1', { total: 5 }));
    dispatch = (id) => {
      abort();
      world.settle(id, id !== 'dlv_2');
    };
    await run();
    expect(sent).toEqual(['dlv_1', 'dlv_2']);
    expect(stateOf()).toMatchObject({ status: 'aborted', total: 5, succeeded: 1, failed: 1 });
    expect(world.deliveries.get('dlv_3')?.mark).toBeNull();
  });

  test('before it began sends nothing', async () => {
    world.add('dlv_1', 'exhausted');
    await world.resends.insert(sampleResend('rsnd_1', { total: 1 }));
    abort();
    await run();
    expect(sent).toEqual([]);
    expect(stateOf()).toMatchObject({ status: 'aborted', total: 1, succeeded: 0, failed: 0 });
  });

  test('after everything was sent is done', async () => {
    world.add('dlv_1', 'exhausted');
    await world.resends.insert(sampleResend('rsnd_1', { total: 1 }));
    dispatch = (id) => {
      abort();
      world.settle(id, true);
    };
    await run();
    expect(stateOf()).toMatchObject({ status: 'done', total: 1, succeeded: 1, failed: 0 });
  });

  test('does not wait for what is deferred, and frees it without counting it', async () => {
    for (const id of IDS) world.add(id, 'exhausted');
    await world.resends.insert(sampleResend('rsnd_1', { total: 5 }));
    dispatch = (id) => {
      abort();
      nowMs += 30_000;
      if (id === 'dlv_1') world.settle(id, false);
    };
    await run();
    expect(stateOf()).toMatchObject({ status: 'aborted', total: 5, succeeded: 0, failed: 1 });
    expect(world.deliveries.get('dlv_2')?.mark).toMatchObject({ state: 'failed' });
  });

  test('and is of an app begins no further part', async () => {
    for (const n of [1, 2, 3]) {
      world.webhooks.add(`wh_${n}`);
      for (const each of 'abcd') world.add(`dlv_${n}${each}`, 'exhausted', 7, `wh_${n}`);
    }
    const ofApp = { appId: 'app_1', webhookId: null, total: 12 };
    await world.resends.insert(sampleResend('rsnd_1', ofApp));
    dispatch = (id) => {
      abort();
      world.settle(id, true);
    };
    await run();
    const { succeeded = 0 } = stateOf() ?? {};
    expect(stateOf()).toMatchObject({ status: 'aborted', total: 12, failed: 0 });
    expect(succeeded).toBe(sent.length);
    expect(succeeded).toBeLessThan(12);
    expect(world.running.size).toBe(1);
  });
});
