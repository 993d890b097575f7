import { beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import {
  createMemoryResends,
  sampleResend,
  type MemoryResends,
} from '../../../../test/support/memory/memory-resends.ts';
import { createPageBudget } from './pages/resend-page-budget.ts';
import { createResendRunner, type ResendRunner } from './run-resends.ts';

let world: MemoryResends;
let leases: MemoryLeases;

beforeEach(() => {
  world = createMemoryResends();
  leases = createMemoryLeases();
});

/** No published delivery ever settles, so what starts keeps running. */
function runner(holder: string): ResendRunner {
  return createResendRunner({
    pageBudget: createPageBudget(16_777_216),
    holder,
    resends: world.resends,
    marks: world.marks,
    leases,
    retryDueTopic: 'due',
    rateLimitOf: () => Promise.resolve(null),
    circuits: { read: () => Promise.resolve(null) },
    isSuspended: () => Promise.resolve(false),
    records: { publish: () => Promise.resolve() },
    nowMs: () => 0,
    logger: createLogger('test', 'silent'),
  });
}

const idOf = (n: number): string => `rsnd_${String(n).padStart(4, '0')}`;

/** A resend of a delivery of its own, put in as it is: `insert` takes one span of a webhook only. */
function begin(n: number, companyId: string): void {
  const id = `dlv_${String(n)}`;
  world.add(id, 'exhausted').companyId = companyId;
  world.running.set(idOf(n), sampleResend(idOf(n), { companyId, page: [id] }));
}

describe('many resends at once', () => {
  test('run five spans of one company at most, and leave room for others', async () => {
    for (let n = 0; n < 20; n += 1) begin(n, 'comp_a');
    begin(20, 'comp_b');
    const running = runner('a');
    void running.tick();
    await eventually('the spans', () => leases.holders.size === 6);
    expect([...leases.holders.keys()]).toContain(`resend/${idOf(20)}`);
    await running.stop();
  });

  test('that other processes hold do not hide the ones after them', async () => {
    for (let n = 0; n < 250; n += 1) {
      begin(n, `comp_${String(n)}`);
      await leases.hold(`resend/${idOf(n)}`, 'b');
    }
    begin(250, 'comp_z');
    const running = runner('a');
    void running.tick();
    await eventually('the last one', () => leases.holders.get(`resend/${idOf(250)}`) === 'a');
    await running.stop();
  });
});
