import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { InsertOutcome } from '@posthorn/platform/mongo/messages/messages.ts';
import type { PublisherProgress } from '@posthorn/platform/mongo/messages/publishers.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { countingIds, sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  createOutbox,
  createUnconfirmedInserts,
  type Outbox,
  type UnconfirmedInserts,
} from './outbox.ts';

const UNAVAILABLE = { status: 503, code: 'unavailable' };

describe('outbox', () => {
  /** The calls of the publisher store, in order. */
  let calls: unknown[][];
  let isOwn: boolean;
  let callStore: () => Promise<void>;
  let insertAll: (batch: readonly Message[]) => Promise<InsertOutcome[]>;
  let committed: Message[];
  let published: string[];
  let progress: Map<string, PublisherProgress>;
  let isKafkaUp: boolean;
  let isKafkaFrozen: boolean;
  let monotonicMs: number;
  let newId: ReturnType<typeof countingIds>;
  let nowMs: number;
  /** How many more records each company may publish. */
  let room: number;
  let outbox: Outbox;

  beforeEach(() => {
    [calls, committed, published] = [[], [], []];
    progress = new Map();
    [isOwn, isKafkaUp, isKafkaFrozen, monotonicMs] = [true, true, false, 0];
    callStore = () => Promise.resolve();
    insertAll = (batch) => Promise.resolve(batch.map(() => 'stored'));
    newId = countingIds();
    [nowMs, room] = [1_000, Infinity];
    const called = async (...call: unknown[]): Promise<void> => {
      calls.push(call);
      await callStore();
    };
    const unused = () => Promise.reject(new Error('not used here'));
    outbox = createOutbox({
      topic: 'created',
      publishers: {
        register: (...args) => called('register', ...args),
        heartbeat: async (...args) => {
          await called('heartbeat', ...args);
          return isOwn;
        },
        handOver: (...args) => called('handOver', ...args),
        forget: (...args) => called('forget', ...args),
        list: unused,
        progressOf: () => Promise.resolve(progress),
        takeOver: unused,
        markSwept: unused,
      },
      messages: {
        insertAll: (batch) => insertAll(batch),
        pageOf: () => Promise.resolve([]),
        findCommitted: (ids) => Promise.resolve(committed.filter(({ id }) => ids.includes(id))),
      },
      records: {
        publish: (records) => {
          if (isKafkaFrozen) return new Promise(() => undefined);
          if (!isKafkaUp) return Promise.reject(new Error('Kafka is away'));
          published.push(...records.map(({ value }) => decodeMessageCreated(value).messageId));
          return Promise.resolve();
        },
      },
      publishQueueBytes: 1_048_576,
      budget: { roomOf: () => room, noteWritten: () => undefined },
      newId,
      logger: createLogger('test', 'silent'),
      nowMs: () => nowMs,
      monotonicMs: () => monotonicMs,
    });
  });

  const built = (): Message => sampleMessage(newId('msg'), { publisherId: outbox.publisherId() });
  const namesOf = () => calls.map(([name]) => name);
  const watermarkOf = (call: unknown[] | undefined) => String(call?.[2]);

  /** Inserts are not executed until the returned function is called. */
  function delayInserts(): () => void {
    const delay = Promise.withResolvers<InsertOutcome[]>();
    insertAll = () => delay.promise;
    return () => {
      delay.resolve(['stored']);
    };
  }

  async function storeOne(): Promise<Message> {
    const message = built();
    await outbox.store([message]);
    return message;
  }

  describe('the outbox', () => {
    test('registers its publisher before the start ends: only then may messages name it', async () => {
      await outbox.start();
      expect(calls.map(([name, id]) => [name, id])).toEqual([['register', outbox.publisherId()]]);
      await outbox.stop(0);
    });

    test('fails the start when the publisher cannot be registered', async () => {
      callStore = () => Promise.reject(new Error('MongoDB is away'));
      await expect(outbox.start()).rejects.toThrow('MongoDB is away');
    });

    test('begins with a watermark below its first message and above older ones', async () => {
      const older = newId('msg');
      await outbox.start();
      expect(watermarkOf(calls[0]) < newId('msg')).toBe(true);
      await outbox.tick();
      expect(watermarkOf(calls[1]) > older).toBe(true);
      await outbox.stop(0);
    });

    test('reports for how long Kafka does not answer, and not that companies wait', async () => {
      const reported = async () => {
        await outbox.tick();
        return calls.at(-1)?.slice(3);
      };
      await outbox.start();
      room = 0;
      await storeOne();
      nowMs += 600_000;
      expect([outbox.state().waitingCompanies, await reported()]).toEqual([1, [null]]);
      [room, isKafkaFrozen] = [Infinity, true];
      outbox.releaseWaiting();
      nowMs += 61_000;
      expect(await reported()).toEqual([61_000]);
      await outbox.stop(0);
    });

    test('raises its watermark while nothing is left to publish', async () => {
      await outbox.start();
      const message = await storeOne();
      await eventually('the record', () => published.length === 1);
      await outbox.tick();
      await outbox.tick();
      const [first, second] = calls.slice(1).map(watermarkOf);
      expect([message.id < String(first), String(first) < String(second)]).toEqual([true, true]);
      await outbox.stop(0);
    });

    test('keeps its watermark below a message that is being stored', async () => {
      await outbox.start();
      const store = delayInserts();
      const message = built();
      const storing = outbox.store([message]);
      await outbox.tick();
      expect(watermarkOf(calls[1]) < message.id).toBe(true);
      store();
      await storing;
      await outbox.stop(0);
    });

    test('keeps its watermark below an insert without a known result, and publishes it once it is stored', async () => {
      await outbox.start();
      insertAll = (batch) => Promise.resolve(batch.map(() => 'unconfirmed'));
      const message = await storeOne();
      await outbox.tick();
      expect(watermarkOf(calls[1]) < message.id).toBe(true);
      expect(published).toEqual([]);
      committed = [message];
      await outbox.tick();
      expect(published).toEqual([message.id]);
      await outbox.stop(0);
    });

    test('publishes nothing for a target that was disabled at acceptance, also when the result of the insert comes late', async () => {
      await outbox.start();
      insertAll = (batch) => Promise.resolve(batch.map(() => 'unconfirmed'));
      const message = sampleMessage(newId('msg'), {
        publisherId: outbox.publisherId(),
        targets: ['wh_1', 'wh_2'],
        disabledTargets: new Set(['wh_2']),
      });
      await outbox.store([message]);
      committed = [message];
      await outbox.tick();
      expect(published).toEqual([message.id]);
      await outbox.stop(0);
    });

    test('publishes an insert that MongoDB executes only after an outage of more than a minute', async () => {
      await outbox.start();
      insertAll = (batch) => Promise.resolve(batch.map(() => 'unconfirmed'));
      const message = await storeOne();
      callStore = () => Promise.reject(new Error('MongoDB is away'));
      monotonicMs = 70_000;
      await outbox.tick();
      callStore = () => Promise.resolve();
      await outbox.tick();
      committed = [message];
      monotonicMs += 1_000;
      await outbox.tick();
      expect(published).toEqual([message.id]);
      await outbox.stop(0);
    });

    test('publishes nothing while no heartbeat was stored for 8 s', async () => {
      await outbox.start();
      monotonicMs = 8_001;
      await storeOne();
      expect(published).toEqual([]);
      await outbox.tick();
      await eventually('the record', () => published.length === 1);
      await outbox.stop(0);
    });
  });

  describe('the wait for the records of a message', () => {
    /** A message of another gateway, which has stored it and not published it. */
    const foreign = (): Message => {
      const message = sampleMessage(newId('msg'), { publisherId: 'gw_other' });
      committed.push(message);
      progress = new Map([['gw_other', { watermark: '', sweptTo: '' }]]);
      return message;
    };

    test('of a message that was just stored ends with its publication', async () => {
      await outbox.start();
      isKafkaUp = false;
      const message = await storeOne();
      const waits = [outbox.whenPublished(message), outbox.ensurePublished(message)];
      isKafkaUp = true;
      await Promise.all(waits.map((wait) => wait.published));
      await outbox.ensurePublished(message).published;
      expect(published).toEqual([message.id]);
      await outbox.stop(0);
    });

    test('ends with 503 when the sweep takes over, and a repeat publishes the records again', async () => {
      await outbox.start();
      isKafkaUp = false;
      const message = await storeOne();
      const { published: first } = outbox.whenPublished(message);
      isOwn = false;
      await outbox.tick();
      await expect(first).rejects.toMatchObject(UNAVAILABLE);
      await expect(outbox.whenPublished(message).published).rejects.toMatchObject(UNAVAILABLE);
      committed = [message];
      progress = new Map([[message.publisherId, { watermark: '', sweptTo: '' }]]);
      await expect(outbox.ensurePublished(message).published).rejects.toMatchObject(UNAVAILABLE);
      isKafkaUp = true;
      await outbox.ensurePublished(message).published;
      expect(published).toEqual([message.id]);
      await outbox.stop(0);
    });

    test('publishes those of another gateway, in the order of the calls', async () => {
      const messages = Array.from({ length: 30 }, foreign).reverse();
      await Promise.all(messages.map((each) => outbox.ensurePublished(each).published));
      expect(published).toEqual(messages.map(({ id }) => id));
    });

    test.each<[string, (id: string) => PublisherProgress | null]>([
      ['is gone', () => null],
      ['has published it', (id) => ({ watermark: id, sweptTo: '' })],
      ['was swept beyond it', (id) => ({ watermark: '', sweptTo: id })],
    ])('of another gateway ends at once when its publisher %s', async (_what, progressAt) => {
      const message = foreign();
      const known = progressAt(message.id);
      progress = new Map(known && [['gw_other', known]]);
      await outbox.ensurePublished(message).published;
      expect(published).toEqual([]);
    });

    test('is 503 for more than half of the places, and publishes nothing for a request that has gone', async () => {
      isKafkaFrozen = true;
      const waits = Array.from({ length: 500 }, () => outbox.ensurePublished(foreign()));
      await expect(outbox.ensurePublished(foreign()).published).rejects.toMatchObject(UNAVAILABLE);
      for (const wait of waits) wait.giveUp();
      expect(published).toEqual([]);
    });
  });

  describe('an outbox whose publisher the sweep has taken over', () => {
    test('leaves the old messages to the sweep and goes on under a new name', async () => {
      await outbox.start();
      const oldId = outbox.publisherId();
      isKafkaUp = false;
      const old = await storeOne();
      isOwn = false;
      await outbox.tick();
      isOwn = true;
      expect(namesOf()).toEqual(['register', 'heartbeat', 'handOver', 'register']);
      expect(calls[2]?.[1]).toBe(oldId);
      expect(watermarkOf(calls[2]) < old.id).toBe(true);
      expect(outbox.publisherId()).not.toBe(oldId);
      isKafkaUp = true;
      const next = await storeOne();
      await eventually('the new message', () => published.includes(next.id));
      expect(published).toEqual([next.id]);
      await outbox.stop(0);
    });

    test('does not publish a message that was stored under the old name meanwhile', async () => {
      await outbox.start();
      const store = delayInserts();
      const storing = storeOne();
      isOwn = false;
      await outbox.tick();
      store();
      await storing;
      await outbox.stop(1_000);
      expect(published).toEqual([]);
    });

    test('leaves the old name to the sweep when it stops before it has a new one', async () => {
      jest.useFakeTimers();
      await outbox.start();
      isOwn = false;
      callStore = () =>
        calls.at(-1)?.[0] === 'register' ? new Promise(() => undefined) : Promise.resolve();
      void outbox.tick();
      const stopped = outbox.stop(0);
      await jest.advanceTimersByTimeAsync(2_000);
      await stopped;
      expect(namesOf()).toEqual(['register', 'heartbeat', 'handOver', 'register', 'handOver']);
      jest.useRealTimers();
    });

    test('repeats the hand-over until the store has taken it', async () => {
      await outbox.start();
      const oldId = outbox.publisherId();
      isOwn = false;
      callStore = () =>
        calls.at(-1)?.[0] === 'handOver' ? Promise.reject(new Error('away')) : Promise.resolve();
      await outbox.tick();
      expect(outbox.publisherId()).toBe(oldId);
      callStore = () => Promise.resolve();
      await outbox.tick();
      expect(outbox.publisherId()).not.toBe(oldId);
      expect(namesOf().slice(-3)).toEqual(['heartbeat', 'handOver', 'register']);
      await outbox.stop(0);
    });
  });

  test('heartbeats go on while an unconfirmed insert waits for Kafka', async () => {
    await outbox.start();
    insertAll = (batch) => Promise.resolve(batch.map(() => 'unconfirmed'));
    committed = [await storeOne()];
    isKafkaFrozen = true;
    void outbox.tick();
    await eventually('the first heartbeat', () => namesOf().includes('heartbeat'));
    void outbox.tick();
    await eventually('the next', () => namesOf().filter((name) => name === 'heartbeat').length > 1);
    await outbox.stop(0);
  });

  describe('an outbox that stops', () => {
    test('removes its publisher when everything was published', async () => {
      await outbox.start();
      await storeOne();
      await outbox.stop(5_000);
      expect(calls.at(-1)).toEqual(['forget', outbox.publisherId(), 0]);
    });

    test('hands over when messages are left', async () => {
      await outbox.start();
      isKafkaUp = false;
      const message = await storeOne();
      await outbox.stop(0);
      expect(namesOf().at(-1)).toBe('handOver');
      expect(watermarkOf(calls.at(-1)) < message.id).toBe(true);
    });

    test('hands over what an insert stores that outlives the drain', async () => {
      await outbox.start();
      const store = delayInserts();
      const storing = storeOne();
      await outbox.stop(0);
      store();
      await storing;
      expect([namesOf().at(-1), published]).toEqual(['handOver', []]);
    });

    test('hands over when the result of an insert is unknown', async () => {
      await outbox.start();
      insertAll = (batch) => Promise.resolve(batch.map(() => 'unconfirmed'));
      await storeOne();
      await outbox.stop(0);
      expect(namesOf().at(-1)).toBe('handOver');
    });

    test('stores nothing once it forgets its publisher: nobody would publish it', async () => {
      await outbox.start();
      callStore = () => new Promise(() => undefined);
      void outbox.stop(0);
      await eventually('the end', () => namesOf().includes('forget'));
      await expect(storeOne()).rejects.toThrow('this gateway stops');
    });
  });
});

describe('unconfirmed inserts', () => {
  const MINUTE_MS = 60_000;

  let stored: Message[] = [];
  let asked: (readonly string[])[] = [];
  let published: string[][] = [];
  let isKafkaUp = true;
  let confirmedForMs = 0;
  let unconfirmed: UnconfirmedInserts;

  const message = (id: string): Message => ({
    id,
    companyId: 'comp_1',
    appId: null,
    payload: '{}',
    targets: ['wh_1'],
    publisherId: 'gw_1',
    requestId: 'request-1',
    createdAtMs: 1,
    eventType: null,
    disabledTargets: new Set<string>(),
    idempotency: null,
  });

  beforeEach(() => {
    [stored, asked, published, isKafkaUp, confirmedForMs] = [[], [], [], true, 0];
    unconfirmed = createUnconfirmedInserts({
      messages: {
        findCommitted: (ids) => {
          asked.push(ids);
          return Promise.resolve(stored.filter(({ id }) => ids.includes(id)));
        },
      },
      publish: (late) => {
        published.push(late.map(({ id }) => id));
        return isKafkaUp ? Promise.resolve() : Promise.reject(new Error('Kafka is away'));
      },
      confirmedForMs: () => confirmedForMs,
    });
  });

  describe('an unconfirmed insert', () => {
    test('is published once when the message turns out to be stored', async () => {
      unconfirmed.add([message('msg_2'), message('msg_3')]);
      stored = [message('msg_2')];
      await unconfirmed.tick();
      await unconfirmed.tick();
      expect(published.flat()).toEqual(['msg_2']);
      expect(asked).toEqual([['msg_2', 'msg_3'], ['msg_3']]);
    });

    test('caps the watermark below the oldest one', () => {
      unconfirmed.add([message('msg_50'), message('msg_30')]);
      const held = unconfirmed.capWatermark('msg_90');
      expect(held < 'msg_30').toBe(true);
      expect(held > 'msg_29').toBe(true);
    });

    test('does not change a watermark below it', () => {
      unconfirmed.add([message('msg_5')]);
      expect(unconfirmed.capWatermark('msg_4')).toBe('msg_4');
      expect(unconfirmed.capWatermark('')).toBe('');
    });

    test('caps a watermark that equals its id', () => {
      unconfirmed.add([message('msg_5')]);
      expect(unconfirmed.capWatermark('msg_5') < 'msg_5').toBe(true);
    });

    test('no longer caps the watermark once it was published', async () => {
      unconfirmed.add([message('msg_5')]);
      stored = [message('msg_5')];
      await unconfirmed.tick();
      expect(unconfirmed.capWatermark('msg_9')).toBe('msg_9');
    });

    test('stays unconfirmed while Kafka is away', async () => {
      unconfirmed.add([message('msg_5')]);
      stored = [message('msg_5')];
      isKafkaUp = false;
      await expect(unconfirmed.tick()).rejects.toThrow('Kafka is away');
      expect(unconfirmed.capWatermark('msg_9')).not.toBe('msg_9');
      isKafkaUp = true;
      await unconfirmed.tick();
      expect(unconfirmed.capWatermark('msg_9')).toBe('msg_9');
    });

    test('is given up when it is still absent after a minute, and not before', async () => {
      unconfirmed.add([message('msg_5')]);
      confirmedForMs = MINUTE_MS;
      await unconfirmed.tick();
      expect(unconfirmed.capWatermark('msg_9')).not.toBe('msg_9');
      confirmedForMs = MINUTE_MS + 1;
      await unconfirmed.tick();
      expect(unconfirmed.capWatermark('msg_9')).toBe('msg_9');
      expect(published.flat()).toEqual([]);
    });

    test('is published, not given up, when it is found at the last moment', async () => {
      unconfirmed.add([message('msg_5')]);
      stored = [message('msg_5')];
      confirmedForMs = 10 * MINUTE_MS;
      await unconfirmed.tick();
      expect(published.flat()).toEqual(['msg_5']);
    });
  });

  test('without unconfirmed inserts the store is not read', async () => {
    await unconfirmed.tick();
    expect([asked, unconfirmed.capWatermark('msg_9')]).toEqual([[], 'msg_9']);
  });
});
