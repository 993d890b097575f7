import { beforeEach, describe, expect, test } from '@jest/globals';
import { decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { interruptAt, type Moment } from '../../../../../test/support/process/interrupt-at.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../../test/support/memory/memory-leases.ts';
import {
  createMemoryResends,
  sampleResend,
  type MemoryResends,
} from '../../../../../test/support/memory/memory-resends.ts';
import { createPageBudget } from './resend-page-budget.ts';
import { createResendRunner, type ResendRunner, type RunResendsDeps } from '../run-resends.ts';

const OF_FIRST = ['dlv_1', 'dlv_2'];
const OF_SECOND = ['dlv_3', 'dlv_4'];
const IDS = [...OF_FIRST, ...OF_SECOND];

let world: MemoryResends;
let leases: MemoryLeases;
let sent: string[];
/** Which of the published attempts have a result. */
let isMade: (deliveryId: string) => boolean;

beforeEach(begin);

async function begin(): Promise<void> {
  [world, leases, sent] = [createMemoryResends(), createMemoryLeases(), []];
  isMade = () => true;
  for (const webhookId of ['wh_1', 'wh_2']) world.webhooks.add(webhookId);
  for (const id of OF_FIRST) world.add(id, 'exhausted', 7, 'wh_1');
  for (const id of OF_SECOND) world.add(id, 'exhausted', 7, 'wh_2');
  await world.resends.insert(sampleResend('rsnd_1', { appId: 'app_1', webhookId: null }));
}

const records = {
  publish(records: readonly OutgoingRecord[]): Promise<void> {
    for (const { value } of records) {
      const id = decodeRetryDue(value).messageId.slice('msg_'.length);
      sent.push(id);
      if (isMade(id)) world.settle(id, true);
    }
    return Promise.resolve();
  },
};

function runner(holder: string, overrides: Partial<RunResendsDeps> = {}): ResendRunner {
  return createResendRunner({
    pageBudget: createPageBudget(16_777_216),
    holder,
    resends: world.resends,
    marks: world.marks,
    leases,
    records,
    retryDueTopic: 'due',
    rateLimitOf: () => Promise.resolve(null),
    circuits: { read: () => Promise.resolve(null) },
    isSuspended: () => Promise.resolve(false),
    nowMs: () => 0,
    logger: createLogger('test', 'silent'),
    ...overrides,
  });
}

/** Runs one round, and everything that it starts. */
async function work({ tick, idle }: ResendRunner): Promise<void> {
  await tick();
  await idle();
}

describe('a resend of an app whose process stops', () => {
  function expectAllDone(): void {
    expect(world.running.get('rsnd_1')).toMatchObject({
      status: 'done',
      total: 4,
      succeeded: 4,
      failed: 0,
    });
    expect(world.running.size).toBe(1);
    // One attempt each, however often it was published.
    for (const id of IDS) expect(world.deliveries.get(id)?.attemptCount).toBe(8);
  }

  test('is continued elsewhere with every webhook that it had started', async () => {
    isMade = (id) => !OF_FIRST.includes(id);
    const first = runner('a');
    const round = work(first);
    await eventually(
      'one webhook is done',
      async () => (await world.resends.findShown('comp_a', 'rsnd_1'))?.succeeded === 2,
    );
    await first.stop();
    await round;
    expect(leases.holders.size).toBe(0);
    isMade = () => true;
    await work(runner('b'));
    expect(sent.sort()).toEqual([...IDS, ...OF_FIRST].sort());
    expectAllDone();
  });

  test.each<Moment>(['before', 'after'])(
    'is finished by the next one, wherever it ended: %s each of its calls',
    async (moment) => {
      for (let nth = 1; ; nth += 1) {
        await begin();
        const { wrap, wasReached } = interruptAt(nth, moment);
        const { resends, marks } = world;
        const parts = { resends: wrap(resends), marks: wrap(marks), records: wrap(records) };
        await work(runner('a', { ...parts, leases: wrap(leases) }));
        leases.holders.clear();
        await work(runner('b'));
        expectAllDone();
        if (!wasReached()) break;
        expect(nth).toBeLessThan(80);
      }
    },
  );
});
