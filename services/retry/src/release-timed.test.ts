import { beforeEach, expect, test } from '@jest/globals';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { WaitingDelivery } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../test/support/memory/memory-leases.ts';
import { createReleaseTimed } from './release-timed.ts';

const NOW_MS = 1_700_000_000_000;

let leases: MemoryLeases;
let due: WaitingDelivery[];
let published: OutgoingRecord[];
let ended: string[];
let late: number[];
let publish: (records: readonly OutgoingRecord[]) => Promise<void>;

beforeEach(() => {
  leases = createMemoryLeases();
  [due, published, ended, late] = [[], [], [], []];
  publish = (records) => Promise.resolve(void published.push(...records));
});

function delivery(n: number, changes: Partial<WaitingDelivery> = {}): WaitingDelivery {
  const ref = { messageId: `msg_${n}`, webhookId: 'wh_1', companyId: 'comp_1', appId: null };
  const waits = { attemptCount: 0, waitingSinceMs: 1, dueAtMs: NOW_MS - n };
  return { id: `dlv_${n}`, ...ref, createdAtMs: 1, ...waits, ...changes };
}

const open = (holder = 'retry-1') =>
  createReleaseTimed({
    holder,
    leases,
    waiting: {
      dueAt: (nowMs, limit) =>
        Promise.resolve(due.filter(({ dueAtMs }) => dueAtMs <= nowMs).slice(0, limit)),
      endWait(page) {
        ended.push(...page.map(({ id }) => id));
        due = due.filter(({ id }) => !ended.includes(id));
        return Promise.resolve();
      },
    },
    records: { publish: (records) => publish(records) },
    retryDueTopic: 'due',
    metrics: { onLate: (ms) => late.push(ms) },
    nowMs: () => NOW_MS,
    monotonicMs: () => 0,
    logger: createLogger('test', 'silent'),
  });

test('publishes the first attempts that are due, with the end of their message, then ends their wait', async () => {
  due = [delivery(7, { expiresAtMs: NOW_MS + 1 }), delivery(-1)];
  await open().tick();
  expect(published.map(({ topic, key }) => [topic, key])).toEqual([['due', 'wh_1']]);
  const [record] = published;
  const attempt = { messageId: 'msg_7', attemptNumber: 1, trigger: 'first', dueAtMs: NOW_MS };
  const deliverAtMs = NOW_MS - 7;
  expect(decodeRetryDue(record?.value ?? Buffer.alloc(0))).toMatchObject({
    ...attempt,
    deliverAtMs,
    expiresAtMs: NOW_MS + 1,
  });
  expect(record?.headers).toEqual({ 'turn-at': String(NOW_MS) });
  expect([ended, due.length, late]).toEqual([['dlv_7'], 1, [7, 0]]);
});

test('releases everything that is due, in pages', async () => {
  due = Array.from({ length: 1_200 }, (_, n) => delivery(n));
  await open().tick();
  expect([published.length, ended.length]).toEqual([1_200, 1_200]);
});

test('lets a delivery wait that Kafka did not take, and publishes it the next time', async () => {
  due = [delivery(1)];
  const loop = open();
  const working = publish;
  publish = () => Promise.reject(new Error('Kafka is away'));
  await loop.tick();
  expect(ended).toEqual([]);
  publish = working;
  await loop.tick();
  expect([published.length, ended]).toEqual([1, ['dlv_1']]);
});

test('releases nothing while another process has the lease, and shows no lateness', async () => {
  due = [delivery(1)];
  await leases.hold('timed-deliveries', 'retry-2');
  await open().tick();
  expect([published, late]).toEqual([[], [0]]);
});
