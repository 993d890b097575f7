import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DeliveryState } from '@posthorn/domain/delivery/delivery.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { LEASE_MS } from '@posthorn/platform/mongo/leases.ts';
import type { Page } from '@posthorn/platform/mongo/messages/messages.ts';
import type { KnownPublisher } from '@posthorn/platform/mongo/messages/publishers.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { createRetryMetrics } from '../metrics.ts';
import { UnpublishedSweep } from './sweep-unpublished.ts';

describe('sweep unpublished', () => {
  let stored: Message[] = [];
  const known = new Map<string, DeliveryState>();
  let listed: KnownPublisher[] = [];
  /** What happened, in order. */
  let events: string[] = [];
  let leases: MemoryLeases;
  let monotonicMs = 0;
  /** Whether a publisher that is taken over is as it was listed. */
  let isUnchanged = true;
  let onPublish: (records: readonly OutgoingRecord[]) => Promise<void>;

  beforeEach(() => {
    [stored, events] = [[], []];
    leases = createMemoryLeases();
    known.clear();
    listed = [taken('gw_1')];
    [monotonicMs, isUnchanged] = [0, true];
    onPublish = () => Promise.resolve();
  });

  /** A publisher that the sweep has taken over, of a gateway that is silent. */
  const taken = (id: string, changes: Partial<KnownPublisher> = {}): KnownPublisher => ({
    id,
    watermark: '',
    sweptTo: '',
    isTakenOver: true,
    heartbeatAtMs: 1,
    silentMs: 31_000,
    stuckMs: null,
    ...changes,
  });

  const done = (event: string) => Promise.resolve(void events.push(event));

  /** Another process gets the lease, which this one has to renew. */
  function loseLease(): Promise<void> {
    leases.holders.set('sweeper', 'other');
    monotonicMs += LEASE_MS;
    return Promise.resolve();
  }

  function namesOf(records: readonly OutgoingRecord[]): string {
    return records
      .map(({ value }) => decodeMessageCreated(value))
      .map(({ messageId, webhookId }) => `${messageId}>${webhookId}`)
      .join(' ');
  }

  function pageIn({ publisherId, afterId, limit }: Page): Message[] {
    const rest = stored.filter((one) => one.publisherId === publisherId && one.id > afterId);
    return rest.slice(0, limit);
  }

  const createTestSweep = () =>
    new UnpublishedSweep({
      holder: 'gw_me',
      createdTopic: 'created',
      logger: createLogger('test', 'silent'),
      metrics: createRetryMetrics(new Registry(), [5_000], () => 0),
      pause: (ms) => done(`pause ${ms}`),
      monotonicMs: () => monotonicMs,
      leases,
      publishers: {
        list: () => Promise.resolve(listed),
        takeOver: async ({ id }, unchanged) => {
          await done(`take over ${id} by its ${unchanged}`);
          return isUnchanged;
        },
        markSwept: (id, sweptTo) => done(`swept ${id} to ${sweptTo}`),
        forget: (id) => done(`forget ${id}`),
      },
      maxRead: 10_000,
      messages: {
        pageOf: (page) => Promise.resolve(pageIn(page)),
        boundedPageOf: (page) => {
          const messages = pageIn(page);
          const isFull = messages.length === page.limit;
          return Promise.resolve({
            messages,
            readTo: isFull ? (messages.at(-1)?.id ?? null) : null,
          });
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

  const message = (id: string, targets = ['wh_1'], publisherId = 'gw_1'): Message =>
    sampleMessage(id, { targets, publisherId, createdAtMs: 1 });

  describe('a sweep of unpublished messages', () => {
    test('publishes messages without deliveries, then stores its progress, then forgets the publisher', async () => {
      stored = [
        message('msg_1', ['wh_1', 'wh_2']),
        message('msg_2'),
        message('msg_x', ['wh_1'], 'gw_2'),
      ];
      known.set(deliveryIdOf('msg_1', 'wh_1'), { status: 'pending', attemptCount: 1 });
      await createTestSweep().tick();
      expect(events).toEqual([
        'publish msg_1>wh_2 msg_2>wh_1',
        'swept gw_1 to msg_2',
        'forget gw_1',
      ]);
    });

    test.each([
      [{ watermark: 'msg_1' }, 'publish msg_2>wh_1 msg_3>wh_1'],
      [{ watermark: 'msg_1', sweptTo: 'msg_2' }, 'publish msg_3>wh_1'],
      [{ watermark: 'msg_2', sweptTo: 'msg_1' }, 'publish msg_3>wh_1'],
    ])('begins after the later of watermark and progress: %j', async (progress, first) => {
      stored = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id));
      listed = [taken('gw_1', { ...progress, silentMs: 20_000 })];
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
      leases.holders.set('sweeper', 'other');
      await createTestSweep().tick();
      expect(events).toEqual([]);
    });

    test('stops when it loses the lease, and forgets no publisher', async () => {
      stored = Array.from({ length: 300 }, (_, index) => message(`msg_${1_000 + index}`));
      onPublish = loseLease;
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
      listed = [];
      await sweeping.tick();
      expect(sweeping.oldestAtMs()).toBeNull();
      listed = [taken('gw_1')];
      await sweeping.tick();
      expect(sweeping.oldestAtMs()).toBe(7);
      onPublish = () => Promise.resolve();
      await sweeping.tick();
      expect(sweeping.oldestAtMs()).toBeNull();
    });

    test('takes over a silent publisher before it publishes for it', async () => {
      stored = [message('msg_1')];
      listed = [taken('gw_1', { isTakenOver: false })];
      const sweeping = createTestSweep();
      await sweeping.tick();
      expect(events).toEqual([]);
      monotonicMs = 4_000;
      await sweeping.tick();
      expect(events.slice(0, 2)).toEqual(['take over gw_1 by its heartbeat', 'publish msg_1>wh_1']);
    });

    test('publishes nothing for a publisher that sent a heartbeat since it was listed', async () => {
      stored = [message('msg_1')];
      [listed, isUnchanged] = [[taken('gw_1', { isTakenOver: false })], false];
      const sweeping = createTestSweep();
      await sweeping.tick();
      monotonicMs = 4_000;
      await sweeping.tick();
      expect(events).toEqual(['take over gw_1 by its heartbeat']);
    });

    test('publishes the oldest message for a gateway that makes no progress, and takes over 20 s later', async () => {
      stored = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id));
      const stuck = { isTakenOver: false, silentMs: 500, stuckMs: 61_000, watermark: 'msg_1' };
      listed = [taken('gw_1', stuck)];
      const sweeping = createTestSweep();
      await sweeping.tick();
      await sweeping.tick();
      expect(events).toEqual(['publish msg_2>wh_1']);
      monotonicMs = 20_000;
      await sweeping.tick();
      expect(events.slice(1)).toEqual(['take over gw_1 by its watermark']);
    });

    test('does not take over while Kafka is away for the sweep too', async () => {
      stored = [message('msg_1')];
      listed = [taken('gw_1', { isTakenOver: false, silentMs: 500, stuckMs: 61_000 })];
      onPublish = () => Promise.reject(new Error('Kafka is away'));
      const sweeping = createTestSweep();
      for (const atMs of [0, 30_000, 60_000, 90_000]) {
        monotonicMs = atMs;
        await sweeping.tick();
      }
      expect(events).toEqual([]);
    });

    test('publishes a page of each publisher in turn', async () => {
      const ids = Array.from({ length: 250 }, (_, index) => `msg_${1_000 + index}`);
      stored = [...ids.map((id) => message(id)), message('msg_1', ['wh_1'], 'gw_2')];
      listed = [taken('gw_1'), taken('gw_2')];
      await createTestSweep().tick();
      expect(events.filter((event) => event.startsWith('swept'))).toEqual([
        'swept gw_1 to msg_1199',
        'swept gw_2 to msg_1',
        'swept gw_1 to msg_1249',
      ]);
    });

    test('lists the publishers again after 10 s of a long backlog', async () => {
      stored = Array.from({ length: 3_000 }, (_, index) => message(`msg_${1_000 + index}`));
      onPublish = () => Promise.resolve(void (monotonicMs += 6_000));
      await createTestSweep().tick();
      // A page of 200, then one of 1,000.
      expect(events.at(-1)).toBe('swept gw_1 to msg_2199');
    });

    test('begins no further page after a stop', async () => {
      stored = Array.from({ length: 900 }, (_, index) => message(`msg_${1_000 + index}`));
      const sweeping = createTestSweep();
      let stopped: Promise<void> | undefined;
      onPublish = () => Promise.resolve(void (stopped ??= sweeping.stop()));
      await sweeping.tick();
      await stopped;
      expect(events.slice(1)).toEqual(['swept gw_1 to msg_1199']);
    });

    test('runs once at a time', async () => {
      stored = [message('msg_1')];
      const sweeping = createTestSweep();
      await Promise.all([sweeping.tick(), sweeping.tick()]);
      expect(events.filter((event) => event.startsWith('publish'))).toHaveLength(1);
    });

    test('keeps the lease from one tick to the next, until it stops', async () => {
      const sweeping = createTestSweep();
      await sweeping.tick();
      expect([...leases.holders]).toEqual([['sweeper', 'gw_me']]);
      await sweeping.stop();
      expect(leases.holders.size).toBe(0);
    });
  });

  describe('messages to many webhooks', () => {
    const wide = (id: string, count: number): Message =>
      message(
        id,
        Array.from({ length: count }, (_, index) => `wh_${index}`),
      );
    const sizes = (): string[] =>
      events.map((event) => {
        const [what = '', ...names] = event.split(' ');
        return what === 'publish' ? `publish ${names.length}` : event;
      });

    test('are published last, in slices, with a pause before each of them', async () => {
      stored = [wide('msg_1', 1_200), message('msg_2')];
      await createTestSweep().tick();
      const slices = ['pause 250', 'publish 500', 'pause 250', 'publish 500', 'pause 250'];
      expect(sizes()).toEqual([...slices, 'publish 201', 'swept gw_1 to msg_2', 'forget gw_1']);
      expect(events[1]).toMatch(/^publish msg_2>wh_1 msg_1>wh_0 /);
    });

    test('end the page of their publisher at 10,000 records', async () => {
      stored = [wide('msg_1', 6_000), wide('msg_2', 6_000), message('msg_3')];
      await createTestSweep().tick();
      const swept = events.filter((event) => event.startsWith('swept'));
      expect(swept).toEqual(['swept gw_1 to msg_1', 'swept gw_1 to msg_3']);
    });

    test('are left to the next holder when the lease is lost meanwhile', async () => {
      stored = [wide('msg_1', 1_200)];
      onPublish = loseLease;
      await createTestSweep().tick();
      expect(sizes()).toEqual(['pause 250', 'publish 500', 'pause 250']);
    });
  });
});

describe('sweep backlogs', () => {
  const DEAD: KnownPublisher = {
    id: 'gw_1',
    watermark: '',
    sweptTo: '',
    isTakenOver: true,
    heartbeatAtMs: 1,
    silentMs: 31_000,
    stuckMs: null,
  };

  let stored: Message[];
  /** The ids that each page has read. */
  let reads: string[];
  let events: string[];
  let published: string[];
  let leases: MemoryLeases;
  /** After so many pages another process gets the lease. */
  let pagesLeft: number;
  let monotonicMs: number;
  /** The publisher whose messages cannot be read within the timeout. */
  let slowId: string;
  let listed: KnownPublisher[];

  beforeEach(() => {
    [reads, events, published, pagesLeft] = [[], [], [], Infinity];
    [monotonicMs, slowId] = [0, ''];
    leases = createMemoryLeases();
  });

  const message = (id: string, publisherId: string): Message =>
    sampleMessage(id, { publisherId, targets: ['wh_1'] });

  const done = (event: string) => Promise.resolve(void events.push(event));

  function timeOut(): Promise<never> {
    monotonicMs += 20_000;
    return Promise.reject(new Error('timed out'));
  }

  const sweepThatReads = (maxRead: number) =>
    new UnpublishedSweep({
      holder: 'me',
      createdTopic: 'created',
      maxRead,
      leases,
      publishers: {
        list: () => Promise.resolve(listed),
        takeOver: () => Promise.resolve(true),
        markSwept: (id, to) => done(`swept ${id} to ${to}`),
        forget: (id) => done(`forget ${id}`),
      },
      messages: {
        pageOf: () => Promise.resolve([]),
        boundedPageOf: ({ publisherId, afterId, maxRead: count }) => {
          if (publisherId === slowId) return timeOut();
          const read = stored.filter(({ id }) => id > afterId).slice(0, count);
          reads.push(read.map(({ id }) => id).join(' '));
          if (reads.length === pagesLeft) {
            leases.holders.set('sweeper', 'other');
            monotonicMs += LEASE_MS / 4;
          }
          const readTo = read.length < count ? null : (read.at(-1)?.id ?? null);
          const messages = read.filter((each) => each.publisherId === publisherId);
          return Promise.resolve({ messages, readTo });
        },
      },
      deliveries: { statesOf: () => Promise.resolve(new Map()) },
      records: {
        publish: (records) => {
          const ids = records.map(({ value }) => decodeMessageCreated(value).messageId);
          return Promise.resolve(void published.push(...ids));
        },
      },
      metrics: createRetryMetrics(new Registry(), [5_000], () => 0),
      pause: () => Promise.resolve(),
      monotonicMs: () => monotonicMs,
      logger: createLogger('test', 'silent'),
    });

  /** One tick, late enough for another scan of what was empty. */
  async function sweepOnce(sweep: UnpublishedSweep, ...publishers: KnownPublisher[]) {
    listed = publishers;
    monotonicMs += 10_000;
    await sweep.tick();
  }

  describe('the sweep of a dead publisher beside others that store many messages', () => {
    test('finds its message behind theirs, in pages of bounded size', async () => {
      const others = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id, 'gw_2'));
      stored = [...others, message('msg_4', 'gw_1')];
      await sweepOnce(sweepThatReads(2), DEAD);
      expect(reads).toEqual(['msg_1 msg_2', 'msg_3 msg_4', '']);
      expect(events).toEqual(['swept gw_1 to msg_4', 'forget gw_1']);
    });

    test.each([
      ['continues where the tick before ended', 31_000, 'msg_2'],
      ['starts over while an insert of the dead gateway may be running', 29_000, 'msg_1'],
    ])('%s', async (_, silentMs, next) => {
      stored = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id, 'gw_2'));
      const sweep = sweepThatReads(1);
      pagesLeft = 1;
      await sweepOnce(sweep, { ...DEAD, silentMs });
      leases.holders.clear();
      await sweepOnce(sweep, { ...DEAD, silentMs: 32_000 });
      expect(reads.slice(0, 2)).toEqual(['msg_1', next]);
      expect(events).toEqual(['forget gw_1']);
    });

    test('sweeps the next publisher when reading one times out in every tick', async () => {
      stored = [message('msg_2', 'gw_2')];
      slowId = 'gw_1';
      const sweep = sweepThatReads(2);
      const tick = () => sweepOnce(sweep, DEAD, { ...DEAD, id: 'gw_2' });
      await tick().then(tick);
      expect(events).toContain('swept gw_2 to msg_2');
    });

    test('finds an insert that ended behind a message that was published already, and nothing twice', async () => {
      stored = [message('msg_2', 'gw_1'), message('msg_3', 'gw_1')];
      const sweep = sweepThatReads(10);
      const known = { ...DEAD, sweptTo: 'msg_3' };
      await sweepOnce(sweep, { ...DEAD, silentMs: 11_000 });
      expect([published, events]).toEqual([['msg_2', 'msg_3'], ['swept gw_1 to msg_3']]);
      stored = [message('msg_1', 'gw_1'), ...stored];
      await sweepOnce(sweep, known);
      expect(published).toEqual(['msg_2', 'msg_3', 'msg_1']);
      await sweepOnce(sweep, known);
      expect([reads.at(-1), published]).toEqual(['', ['msg_2', 'msg_3', 'msg_1']]);
    });

    test('starts over after it has read everything', async () => {
      stored = [message('msg_1', 'gw_2')];
      const sweep = sweepThatReads(1);
      await sweepOnce(sweep, DEAD);
      await sweepOnce(sweep, DEAD);
      expect(reads).toEqual(['msg_1', '', 'msg_1', '']);
    });
  });
});
