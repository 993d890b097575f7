import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import type { ApiError } from '../api-error.ts';
import { Publication, type PublicationState, PublishOverflow } from './publication.ts';

describe('publish created', () => {
  /** A company that waits alone may hold half of it: 300 small messages. */
  const QUEUE_BYTES = 2 * 300 * 1_086;
  /** Many more than fit into memory. */
  const TOO_MANY = 2_001;

  let stored: Message[] = [];
  let batches: string[][] = [];
  let nowMs = 0;
  let failuresLeft = 0;
  let isOwner = true;
  let onSend: (ids: string[]) => void;
  /** Called before a page that was read back is returned, with whether it was the last one. */
  let onRead: (isLast: boolean) => void;
  /** Pending while Kafka does not acknowledge. */
  let gate: Promise<void>;
  let open: () => void;
  let publication: Publication;

  beforeEach(() => {
    [stored, batches, nowMs, failuresLeft, isOwner] = [[], [], 1_000, 0, true];
    gate = Promise.resolve();
    onSend = () => undefined;
    onRead = () => undefined;
    publication = new Publication({
      topic: 'created',
      publisherId: 'gw_1',
      logger: createLogger('test', 'silent'),
      publishQueueBytes: QUEUE_BYTES,
      firstWatermark: '',
      assertOwner: () => {
        if (!isOwner) throw new Error('not the owner');
      },
      nowMs: () => nowMs,
      monotonicMs: () => 0,
      records: { publish },
      messages: {
        pageOf: ({ publisherId, afterId, limit }) => {
          const rest = stored.filter((one) => one.publisherId === publisherId && one.id > afterId);
          const page = rest.slice(0, limit);
          onRead(page.length < limit);
          return Promise.resolve(page);
        },
      },
    });
  });

  async function publish(records: readonly OutgoingRecord[]): Promise<void> {
    const ids = records.map(({ value }) => decodeMessageCreated(value).messageId);
    batches.push(ids);
    onSend(ids);
    await gate;
    if (failuresLeft-- > 0) throw new Error('Kafka is away');
  }

  /** Kafka acknowledges nothing until `open` is called. */
  function shut(): void {
    gate = new Promise((resolve) => (open = resolve));
  }

  /** Stores messages with these numbers and hands them over, as an accepted batch is. */
  function accept(numbers: number[], changes: Partial<Message> = {}): void {
    const batch = numbers.map((number) => ({
      id: `msg_${String(number).padStart(6, '0')}`,
      companyId: 'comp_1',
      appId: null,
      payload: '{}',
      targets: ['wh_1'],
      publisherId: 'gw_1',
      requestId: 'request-1',
      eventType: null,
      disabledTargets: new Set<string>(),
      idempotency: null,
      createdAtMs: number,
      ...changes,
    }));
    stored.push(...batch);
    publication.add(batch);
  }

  /** What has become of the wait for a message by now. */
  function waitFor(number: number, companyId = 'comp_1') {
    const id = `msg_${String(number).padStart(6, '0')}`;
    const wait = publication.whenPublished({ id, companyId });
    let state = 'waiting';
    wait.published.then(
      () => (state = 'published'),
      (error: unknown) => (state = (error as ApiError).reason ?? 'failed'),
    );
    return { ...wait, state: () => new Promise(setImmediate).then(() => state) };
  }

  const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
  const idsOf = (messages: readonly Message[]) => messages.map(({ id }) => id);

  describe('the publication', () => {
    test('publishes in the order of the ids, one produce request at a time', async () => {
      shut();
      accept([1]);
      accept([2, 3]);
      accept([4]);
      expect(batches).toEqual([['msg_000001']]);
      open();
      await publication.close(60_000);
      expect(batches).toEqual([['msg_000001'], ['msg_000002', 'msg_000003', 'msg_000004']]);
    });

    test('publishes nothing for targets that were disabled at acceptance', async () => {
      accept([1], { targets: ['wh_1', 'wh_2'], disabledTargets: new Set(['wh_2']) });
      accept([2], { disabledTargets: new Set(['wh_1']) });
      await publication.close(60_000);
      expect(batches.flat()).toEqual(['msg_000001']);
      expect(publication.state()).toMatchObject({ watermark: 'msg_000002', unpublished: 0 });
    });

    test('raises the watermark once Kafka has acknowledged, and not before', async () => {
      expect(publication.state()).toEqual({
        watermark: '',
        unpublished: 0,
        behindMs: null,
        stuckMs: null,
        waitingCompanies: 0,
      });
      shut();
      accept([1, 2]);
      expect(publication.state()).toEqual({
        watermark: '',
        unpublished: 2,
        behindMs: 999,
        stuckMs: 0,
        waitingCompanies: 0,
      });
      open();
      await publication.close(60_000);
      expect(publication.state()).toEqual({
        watermark: 'msg_000002',
        unpublished: 0,
        behindMs: null,
        stuckMs: null,
        waitingCompanies: 0,
      });
    });

    test('ends the waits for a message when Kafka has acknowledged all of its records', async () => {
      shut();
      accept([1]);
      accept([2, 3], { targets: upTo(400).map((n) => `wh_${n}`) });
      const waits = [1, 2, 3, 1].map((number) => waitFor(number));
      const states = () => Promise.all(waits.map(({ state }) => state()));
      expect(await states()).toEqual(['waiting', 'waiting', 'waiting', 'waiting']);
      onSend = (ids) => {
        if (ids.includes('msg_000003')) shut();
      };
      open();
      await eventually('the second batch', () => batches.length === 2);
      expect(await states()).toEqual(['published', 'waiting', 'waiting', 'published']);
      onSend = () => undefined;
      open();
      await publication.close(60_000);
      expect(await states()).toEqual(['published', 'published', 'published', 'published']);
      expect(await waitFor(2).state()).toBe('published');
    });

    test('ends the waits with 503 when it is handed over, and one that its request gives up', async () => {
      shut();
      accept([1, 2]);
      const [given, left] = [waitFor(1), waitFor(2)];
      given.giveUp();
      expect([await given.state(), await left.state()]).toEqual(['deadline_over', 'waiting']);
      publication.abandon();
      expect(await left.state()).toBe('kafka_unavailable');
      expect(await waitFor(2).state()).toBe('kafka_unavailable');
      open();
    });

    test('moves the watermark past messages without targets', async () => {
      accept([1], { targets: [] });
      await publication.close(60_000);
      expect(publication.state()).toMatchObject({ watermark: 'msg_000001', unpublished: 0 });
    });

    test('reports how long the oldest message has waited, never a negative time', () => {
      shut();
      accept([900, 990]);
      expect(publication.state().behindMs).toBe(100);
      nowMs = 500;
      expect(publication.state().behindMs).toBe(0);
    });

    test('publishes the same batch again while Kafka fails, and nothing after it', async () => {
      failuresLeft = 1;
      accept([1]);
      accept([2]);
      await publication.close(60_000);
      expect(batches).toEqual([['msg_000001'], ['msg_000001'], ['msg_000002']]);
      expect(publication.state()).toMatchObject({ watermark: 'msg_000002', unpublished: 0 });
    });

    test('leaves to the sweep what Kafka has not acknowledged when the drain ends', async () => {
      failuresLeft = Infinity;
      accept([1, 2]);
      await publication.close(0);
      expect(publication.state()).toMatchObject({ watermark: '', unpublished: 2 });
    });

    test('publishes nothing while it is not certain to be the owner', async () => {
      isOwner = false;
      accept([1]);
      await publication.close(0);
      expect(batches).toEqual([]);
      expect(publication.state()).toMatchObject({ watermark: '', unpublished: 1 });
    });

    test('publishes nothing more when it is abandoned, not even what waits', async () => {
      shut();
      accept([1]);
      accept([2]);
      publication.abandon();
      open();
      await publication.close(60_000);
      accept([3]);
      await publication.close(60_000);
      expect(batches).toEqual([['msg_000001']]);
    });

    test('is stuck from an error on that is no outage, so that the sweep takes over', async () => {
      onSend = () => {
        throw new TypeError('a fault in the code');
      };
      accept([1]);
      await publication.close(60_000);
      nowMs += 61_000;
      expect(publication.state()).toMatchObject({ watermark: '', unpublished: 1, stuckMs: 61_000 });
      accept([2]);
      await publication.close(60_000);
      expect(batches).toEqual([['msg_000001']]);
    });

    test('publishes nothing at a stop when nothing waits', async () => {
      await publication.close(0);
      expect(batches).toEqual([]);
    });
  });

  describe('a publication that falls behind', () => {
    test('reads what did not fit back from the store, exactly once', async () => {
      shut();
      accept([1]);
      for (const number of upTo(TOO_MANY)) accept([number + 1]);
      expect(publication.state().unpublished).toBeLessThan(TOO_MANY);
      open();
      await publication.close(60_000);
      expect(batches.flat()).toEqual(idsOf(stored));
      expect(publication.state()).toEqual({
        watermark: stored.at(-1)?.id,
        unpublished: 0,
        behindMs: null,
        stuckMs: null,
        waitingCompanies: 0,
      });
    });

    test('keeps the waits for what did not fit until that is read back and published', async () => {
      shut();
      accept(upTo(TOO_MANY));
      const last = waitFor(TOO_MANY);
      expect(await last.state()).toBe('waiting');
      open();
      await last.published;
      expect(batches.flat()).toEqual(idsOf(stored));
    });

    test('counts the bytes of the payloads too', async () => {
      shut();
      accept(upTo(30), { payload: `"${'x'.repeat(16_000)}"` });
      expect(publication.state().unpublished).toBe(19);
      open();
      await publication.close(60_000);
      expect(batches.flat()).toEqual(idsOf(stored));
    });

    test('publishes what is stored while it reads the last page, and what follows', async () => {
      shut();
      accept(upTo(TOO_MANY));
      onSend = (ids) => {
        if (ids.at(-1) !== idsOf(stored).at(-1) || stored.length > TOO_MANY) return;
        accept([50_000]);
      };
      open();
      await publication.close(60_000);
      accept([50_001]);
      await publication.close(60_000);
      expect(batches.flat()).toEqual(idsOf(stored));
      expect(batches.slice(-2)).toEqual([['msg_050000'], ['msg_050001']]);
    });

    test('ends although messages come during each read', async () => {
      shut();
      accept(upTo(TOO_MANY));
      let reads = 0;
      onRead = () => {
        reads += 1;
        if (reads < 1_000) accept([TOO_MANY + reads]);
      };
      open();
      await publication.close(60_000);
      expect(reads).toBeLessThan(50);
      expect(batches.flat()).toEqual(idsOf(stored));
    });

    test('reads again what comes during a read and does not fit', async () => {
      shut();
      accept(upTo(TOO_MANY));
      onRead = (isLast) => {
        if (isLast && stored.length === TOO_MANY)
          accept(upTo(TOO_MANY).map((number) => TOO_MANY + number));
      };
      open();
      await publication.close(60_000);
      expect(stored).toHaveLength(2 * TOO_MANY);
      expect(batches.flat()).toEqual(idsOf(stored));
      expect(publication.state()).toMatchObject({ watermark: stored.at(-1)?.id, unpublished: 0 });
    });

    test('reports unpublished messages and their age until it has read the last page', async () => {
      shut();
      accept(upTo(TOO_MANY));
      nowMs = 61_001;
      const states: PublicationState[] = [];
      onSend = () => states.push(publication.state());
      open();
      await publication.close(60_000);
      expect(states.length).toBeGreaterThan(1);
      for (const { watermark, behindMs, unpublished } of states) {
        const oldest = stored.find(({ id }) => id > watermark);
        expect(behindMs).toBe(nowMs - Number(oldest?.createdAtMs));
        expect(unpublished).toBeGreaterThan(0);
      }
    });

    test('holds at most one page more than the share of the company', async () => {
      shut();
      accept(upTo(TOO_MANY));
      const most = QUEUE_BYTES / 2 + QUEUE_BYTES / 8 + 2_097_152;
      expect(publication.usedBytes()).toBeGreaterThan(QUEUE_BYTES / 3);
      onSend = () => {
        expect(publication.usedBytes()).toBeLessThan(most);
      };
      open();
      await publication.close(60_000);
      expect(publication.usedBytes()).toBe(0);
    });
  });
});

describe('publish overflow', () => {
  const BYTES = 1_000;
  let overflow: PublishOverflow;

  beforeEach(() => {
    overflow = new PublishOverflow(() => BYTES);
  });

  const idOf = (number: number): string => `msg_0000000000000000000000000${number}`;
  const message = (number: number, companyId = 'comp_a') =>
    sampleMessage(idOf(number), { companyId, createdAtMs: number });

  describe('the publish overflow', () => {
    test('is empty at first', () => {
      expect([overflow.hasCompany('comp_a'), overflow.readToId(), overflow.oldestAtMs()]).toEqual([
        false,
        null,
        null,
      ]);
    });

    test('has every message of a company from the first one that did not fit', () => {
      overflow.add(message(3), idOf(2));
      expect([overflow.hasCompany('comp_a'), overflow.hasCompany('comp_b')]).toEqual([true, false]);
      const asked = [message(2), message(3), message(4), message(4, 'comp_b')];
      expect(asked.map((each) => overflow.hasMessage(each))).toEqual([false, true, true, false]);
      expect([overflow.readToId(), overflow.oldestAtMs()]).toEqual([idOf(2), 3]);
    });

    test('starts before the first message of any company and ends at the last', () => {
      overflow.add(message(3), idOf(2));
      overflow.add(message(5, 'comp_b'), idOf(4));
      expect([overflow.readToId(), overflow.lastId()]).toEqual([idOf(2), idOf(5)]);
      overflow.markRead(idOf(4), 4);
      expect([overflow.readToId(), overflow.oldestAtMs()]).toEqual([idOf(4), 4]);
      overflow.markRead(idOf(5), 5);
      expect([
        overflow.readToId(),
        overflow.hasCompany('comp_a'),
        overflow.hasCompany('comp_b'),
      ]).toEqual([null, false, false]);
    });

    test('has pages of as many messages as fit, from 1 to 200', () => {
      overflow.add(message(3), idOf(2));
      expect([10, 12_500, 10_000_000].map((bytes) => overflow.pageLimit(bytes))).toEqual([
        1, 12, 200,
      ]);
    });
  });
});
