import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { DeliveryState } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { SweepCandidate } from '@posthorn/platform/mongo/messages/publishers.ts';
import { Registry } from 'prom-client';
import { createRetryMetrics } from './retry-metrics.ts';
import { createSweeper } from './sweep-unpublished.ts';

let stored: Message[] = [];
const known = new Map<string, DeliveryState>();
let candidates: SweepCandidate[] = [];
/** What happened, in order. */
let events: string[] = [];
let holds: boolean[] = [];
let onPublish: (records: readonly OutgoingRecord[]) => Promise<void>;

beforeEach(() => {
  [stored, events, holds] = [[], [], []];
  known.clear();
  candidates = [{ _id: 'gw_1', watermark: '' }];
  onPublish = () => Promise.resolve();
});

const unused = () => Promise.reject(new Error('not used here'));
const done = (event: string) => {
  events.push(event);
  return Promise.resolve();
};

function namesOf(records: readonly OutgoingRecord[]): string {
  return records
    .map(({ value }) => decodeMessageCreated(value))
    .map(({ messageId, webhookId }) => `${messageId}>${webhookId}`)
    .join(' ');
}

const createTestSweeper = () =>
  createSweeper({
    holder: 'gw_me',
    createdTopic: 'created',
    logger: createLogger('test', 'silent'),
    metrics: createRetryMetrics(new Registry()),
    leases: {
      hold: () => Promise.resolve(holds.shift() ?? true),
      release: (name, holder) => done(`release ${name} of ${holder}`),
    },
    publishers: {
      findToSweep: () => Promise.resolve(candidates),
      markSwept: (id, sweptTo) => done(`swept ${id} to ${sweptTo}`),
      forget: (id) => done(`forget ${id}`),
      heartbeat: unused,
    },
    messages: {
      pageOf: ({ publisherId, afterId, limit }) => {
        const rest = stored.filter((one) => one.publisherId === publisherId && one.id > afterId);
        return Promise.resolve(rest.slice(0, limit));
      },
    },
    deliveries: { statesOf: () => Promise.resolve(known) },
    log: {
      publish: async (records) => {
        await onPublish(records);
        await done(`publish ${namesOf(records)}`);
      },
      consume: unused,
      close: unused,
      isConnected: () => true,
    },
  });

const message = (id: string, targets = ['wh_1'], publisherId = 'gw_1'): Message => ({
  id,
  targets,
  publisherId,
  companyId: 'comp_1',
  appId: null,
  payload: '{}',
  eventType: null,
  disabledTargets: [],
  idempotency: null,
  requestId: 'request-1',
  createdAtMs: 1,
});

describe('a sweep', () => {
  test('publishes what has no delivery, then notes the progress, then forgets the publisher', async () => {
    stored = [
      message('msg_1', ['wh_1', 'wh_2']),
      message('msg_2'),
      message('msg_x', ['wh_1'], 'gw_2'),
    ];
    known.set(deliveryIdOf('msg_1', 'wh_1'), { status: 'pending', attemptCount: 1 });
    await createTestSweeper().tick();
    expect(events).toEqual(['publish msg_1>wh_2 msg_2>wh_1', 'swept gw_1 to msg_2', 'forget gw_1']);
  });

  test.each([
    [{ watermark: 'msg_1' }, 'publish msg_2>wh_1 msg_3>wh_1'],
    [{ watermark: 'msg_1', sweptTo: 'msg_2' }, 'publish msg_3>wh_1'],
    [{ watermark: 'msg_2', sweptTo: 'msg_1' }, 'publish msg_3>wh_1'],
  ])('begins after the later of watermark and progress: %j', async (progress, first) => {
    stored = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id));
    candidates = [{ _id: 'gw_1', ...progress }];
    await createTestSweeper().tick();
    expect(events[0]).toBe(first);
  });

  test('publishes every message of many pages exactly once', async () => {
    const ids = Array.from({ length: 450 }, (_, index) => `msg_${1_000 + index}`);
    stored = ids.map((id) => message(id));
    await createTestSweeper().tick();
    const names = events.filter((event) => event.startsWith('publish '));
    expect(names.flatMap((event) => event.split(' ').slice(1))).toEqual(
      ids.map((id) => `${id}>wh_1`),
    );
  });

  test('passes over messages that nobody gets', async () => {
    stored = [message('msg_1', [])];
    await createTestSweeper().tick();
    expect(events).toContain('swept gw_1 to msg_1');
  });

  test('does nothing while another process holds the lease', async () => {
    stored = [message('msg_1')];
    holds = [false];
    await createTestSweeper().tick();
    expect(events).toEqual([]);
  });

  test('stops when it loses the lease on the way, and forgets nobody', async () => {
    stored = Array.from({ length: 300 }, (_, index) => message(`msg_${1_000 + index}`));
    holds = [true, true, false];
    await createTestSweeper().tick();
    expect(events.filter((event) => !event.startsWith('publish'))).toEqual([
      'swept gw_1 to msg_1199',
    ]);
  });

  test('notes nothing that Kafka did not take, and the next one does it again', async () => {
    stored = [message('msg_1')];
    const sweeper = createTestSweeper();
    onPublish = () => Promise.reject(new Error('Kafka is away'));
    await sweeper.tick();
    expect(events).toEqual([]);
    onPublish = () => Promise.resolve();
    await sweeper.tick();
    expect(events).toEqual(['publish msg_1>wh_1', 'swept gw_1 to msg_1', 'forget gw_1']);
  });

  test('knows the oldest message that waits until Kafka has it or its gateway has seen to it', async () => {
    stored = [message('msg_1'), message('msg_2')];
    known.set(deliveryIdOf('msg_1', 'wh_1'), { status: 'pending', attemptCount: 1 });
    stored[1] = { ...message('msg_2'), createdAtMs: 7 };
    const sweeper = createTestSweeper();
    expect(sweeper.oldestAtMs()).toBeNull();
    onPublish = () => Promise.reject(new Error('Kafka is away'));
    await sweeper.tick();
    expect(sweeper.oldestAtMs()).toBe(7);
    candidates = [];
    await sweeper.tick();
    expect(sweeper.oldestAtMs()).toBeNull();
    candidates = [{ _id: 'gw_1', watermark: '' }];
    await sweeper.tick();
    expect(sweeper.oldestAtMs()).toBe(7);
    onPublish = () => Promise.resolve();
    await sweeper.tick();
    expect(sweeper.oldestAtMs()).toBeNull();
  });

  test('is one at a time', async () => {
    stored = [message('msg_1')];
    const sweeper = createTestSweeper();
    await Promise.all([sweeper.tick(), sweeper.tick()]);
    expect(events.filter((event) => event.startsWith('publish'))).toHaveLength(1);
  });

  test('gives the lease back at the end', async () => {
    await createTestSweeper().stop();
    expect(events).toEqual(['release sweeper of gw_me']);
  });
});
