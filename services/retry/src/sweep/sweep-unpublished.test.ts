import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { DeliveryState } from '@posthorn/domain/delivery.ts';
import type { SweepCandidate } from '@posthorn/platform/mongo/messages/publishers.ts';
import { Registry } from 'prom-client';
import { createRetryMetrics } from '../retry-metrics.ts';
import { createUnpublishedSweep } from './sweep-unpublished.ts';

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
  candidates = [{ id: 'gw_1', watermark: '', sweptTo: '' }];
  onPublish = () => Promise.resolve();
});

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

const createTestSweep = () =>
  createUnpublishedSweep({
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
    },
    messages: {
      pageOf: ({ publisherId, afterId, limit }) => {
        const rest = stored.filter((one) => one.publisherId === publisherId && one.id > afterId);
        return Promise.resolve(rest.slice(0, limit));
      },
    },
    deliveries: { statesOf: () => Promise.resolve(known) },
    records: {
      publish: async (records) => {
        await onPublish(records);
        await done(`publish ${namesOf(records)}`);
      },
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

describe('a sweep of unpublished messages', () => {
  test('publishes messages without deliveries, then stores its progress, then forgets the publisher', async () => {
    stored = [
      message('msg_1', ['wh_1', 'wh_2']),
      message('msg_2'),
      message('msg_x', ['wh_1'], 'gw_2'),
    ];
    known.set(deliveryIdOf('msg_1', 'wh_1'), { status: 'pending', attemptCount: 1 });
    await createTestSweep().tick();
    expect(events).toEqual(['publish msg_1>wh_2 msg_2>wh_1', 'swept gw_1 to msg_2', 'forget gw_1']);
  });

  test.each([
    [{ watermark: 'msg_1' }, 'publish msg_2>wh_1 msg_3>wh_1'],
    [{ watermark: 'msg_1', sweptTo: 'msg_2' }, 'publish msg_3>wh_1'],
    [{ watermark: 'msg_2', sweptTo: 'msg_1' }, 'publish msg_3>wh_1'],
  ])('begins after the later of watermark and progress: %j', async (progress, first) => {
    stored = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id));
    candidates = [{ id: 'gw_1', sweptTo: '', ...progress }];
    await createTestSweep().tick();
    expect(events[0]).toBe(first);
  });

  test('publishes every message of many pages exactly once', async () => {
    const ids = Array.from({ length: 450 }, (_, index) => `msg_${1_000 + index}`);
    stored = ids.map((id) => message(id));
    await createTestSweep().tick();
    const names = events.filter((event) => event.startsWith('publish '));
    expect(names.flatMap((event) => event.split(' ').slice(1))).toEqual(
      ids.map((id) => `${id}>wh_1`),
    );
  });

  test('skips messages without targets', async () => {
    stored = [message('msg_1', [])];
    await createTestSweep().tick();
    expect(events).toContain('swept gw_1 to msg_1');
  });

  test('does nothing while another process holds the lease', async () => {
    stored = [message('msg_1')];
    holds = [false];
    await createTestSweep().tick();
    expect(events).toEqual([]);
  });

  test('stops when it loses the lease, and forgets no publisher', async () => {
    stored = Array.from({ length: 300 }, (_, index) => message(`msg_${1_000 + index}`));
    holds = [true, true, false];
    await createTestSweep().tick();
    expect(events.filter((event) => !event.startsWith('publish'))).toEqual([
      'swept gw_1 to msg_1199',
    ]);
  });

  test('stores no progress for what Kafka did not acknowledge, and publishes it the next time', async () => {
    stored = [message('msg_1')];
    const sweeping = createTestSweep();
    onPublish = () => Promise.reject(new Error('Kafka is away'));
    await sweeping.tick();
    expect(events).toEqual([]);
    onPublish = () => Promise.resolve();
    await sweeping.tick();
    expect(events).toEqual(['publish msg_1>wh_1', 'swept gw_1 to msg_1', 'forget gw_1']);
  });

  test('knows the oldest unpublished message until it or its gateway has published it', async () => {
    stored = [message('msg_1'), message('msg_2')];
    known.set(deliveryIdOf('msg_1', 'wh_1'), { status: 'pending', attemptCount: 1 });
    stored[1] = { ...message('msg_2'), createdAtMs: 7 };
    const sweeping = createTestSweep();
    expect(sweeping.oldestAtMs()).toBeNull();
    onPublish = () => Promise.reject(new Error('Kafka is away'));
    await sweeping.tick();
    expect(sweeping.oldestAtMs()).toBe(7);
    candidates = [];
    await sweeping.tick();
    expect(sweeping.oldestAtMs()).toBeNull();
    candidates = [{ id: 'gw_1', watermark: '', sweptTo: '' }];
    await sweeping.tick();
    expect(sweeping.oldestAtMs()).toBe(7);
    onPublish = () => Promise.resolve();
    await sweeping.tick();
    expect(sweeping.oldestAtMs()).toBeNull();
  });

  test('runs once at a time', async () => {
    stored = [message('msg_1')];
    const sweeping = createTestSweep();
    await Promise.all([sweeping.tick(), sweeping.tick()]);
    expect(events.filter((event) => event.startsWith('publish'))).toHaveLength(1);
  });

  test('releases the lease when it stops', async () => {
    await createTestSweep().stop();
    expect(events).toEqual(['release sweeper of gw_me']);
  });
});
