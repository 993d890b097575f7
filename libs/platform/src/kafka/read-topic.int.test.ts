import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { openScratchLog, type ScratchLog } from '../../../../test/support/stores/scratch-log.ts';
import { createLogger } from '../service/logger.ts';
import { createKafkaClient } from './connect.ts';
import { readTopic, type ReadTopicOptions, type StoredRecord } from './read-topic.ts';

const brokers = (process.env.KAFKA_BROKERS ?? '').split(',');
const logger = createLogger('test', 'silent');
const kafka = createKafkaClient('posthorn-test', { brokers }, logger);

describe('reading a topic', () => {
  let scratch: ScratchLog;
  let topic: string;
  let counter = 0;

  beforeAll(async () => {
    scratch = await openScratchLog();
  });

  afterAll(() => scratch.records.close());

  beforeEach(async () => {
    counter += 1;
    topic = await scratch.newTopic(`read-${counter}`);
  });

  async function read(which: Partial<ReadTopicOptions> = {}): Promise<StoredRecord[]> {
    const found: StoredRecord[] = [];
    await readTopic(kafka, {
      topic,
      groupId: `${topic}-reader-${randomUUID()}`,
      logger,
      visit: (record) => Promise.resolve(void found.push(record)),
      ...which,
    });
    return found;
  }

  function publish(keys: readonly string[], bytes = 2): Promise<void> {
    const headers = { requestId: 'request-1' };
    const value = Buffer.alloc(bytes, 0xff);
    return scratch.records.publish(keys.map((key) => ({ topic, key, value, headers })));
  }

  const keys = (count: number) => Array.from({ length: count }, (_, n) => `key-${n}`);

  it('visits every record once, as it was stored', async () => {
    const before = Date.now();
    await publish(keys(300));
    const found = await read();
    expect(found.map(({ key }) => key).sort()).toEqual(keys(300).sort());
    expect(new Set(found.map(({ partition }) => partition)).size).toBe(3);
    const [first] = found;
    expect(first).toMatchObject({ topic, value: Buffer.from([0xff, 0xff]) });
    expect(first?.headers).toEqual({ requestId: 'request-1' });
    expect(first?.atMs).toBeGreaterThanOrEqual(before);
  });

  it('ends by itself when the topic is empty', async () => {
    expect(await read()).toEqual([]);
    expect(await read({ sinceMs: 1 })).toEqual([]);
    expect(await read({ only: [{ partition: 0, offset: 0 }] })).toEqual([]);
  });

  it('ends where the topic ends with a transaction, and visits no record of one that was aborted', async () => {
    const producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1 });
    await producer.connect();
    for (const [value, end] of [
      ['a', 'commit'],
      ['b', 'abort'],
    ] as const) {
      const transaction = await producer.transaction();
      await transaction.send({ topic, messages: [{ value, partition: 0 }] });
      await transaction[end]();
    }
    await producer.disconnect();
    expect((await read()).map(({ offset }) => offset)).toEqual([0]);
    expect(await read({ only: [{ partition: 0, offset: 3 }] })).toEqual([]);
  });

  it('ends where the topic ended at the start, although more is written meanwhile', async () => {
    await publish(keys(30));
    const found = new Set<string>();
    await read({
      visit: async ({ key }) => {
        found.add(key);
        await publish(['later']);
      },
    });
    expect(found).toEqual(new Set(keys(30)));
  });

  it('visits a single record, however many surround it', async () => {
    await publish(keys(30));
    const wanted = (await read()).find(({ offset }) => offset === 3);
    const only = { partition: wanted?.partition ?? 0, offset: 3 };
    expect(await read({ only: [only] })).toEqual([wanted]);
    expect(await read({ only: [{ ...only, offset: 1_000 }] })).toEqual([]);
    expect(await read({ only: [{ ...only, partition: 17 }] })).toEqual([]);
  });

  it('leaves out records older than asked for', async () => {
    await publish(['old']);
    const [old] = await read();
    const sinceMs = (old?.atMs ?? 0) + 1;
    expect(await read({ sinceMs })).toEqual([]);
    while (Date.now() < sinceMs) await new Promise(setImmediate);
    await publish(['new-1', 'new-2']);
    expect((await read({ sinceMs })).map(({ key }) => key).sort()).toEqual(['new-1', 'new-2']);
  });

  it('visits records that are as large as a batch may be', async () => {
    await publish(keys(6), 900_000);
    expect(await read()).toHaveLength(6);
  });

  it('rejects with the error of the visit, and visits nothing more', async () => {
    await publish(keys(30));
    let visits = 0;
    const visit = (): Promise<void> => {
      visits += 1;
      return Promise.reject(new TypeError('enough'));
    };
    await expect(read({ visit })).rejects.toThrow('enough');
    expect(visits).toBe(1);
  });

  it('continues after a visit that took longer than the session', async () => {
    await publish(keys(3));
    const sessionMs = 6_000;
    // A session ends by the broker's clock, and no event shows that it would have ended: time has to pass.
    const longMs = 1.5 * sessionMs;
    let visits = 0;
    const visit = async (): Promise<void> => {
      visits += 1;
      if (visits === 1) await wait(longMs);
    };
    await read({ sessionMs, visit });
    expect(visits).toBe(3);
  });

  it('leaves no group behind and does not affect the next reader', async () => {
    await publish(keys(5));
    const groupId = `${topic}-group`;
    expect(await read({ groupId })).toHaveLength(5);
    expect(await read({ groupId })).toHaveLength(5);
    const admin = kafka.admin();
    await admin.connect();
    const { groups } = await admin.listGroups();
    await admin.disconnect();
    expect(groups.map((group) => group.groupId)).not.toContain(groupId);
  });

  it('rejects for a topic that does not exist', async () => {
    await expect(read({ topic: `${topic}-none` })).rejects.toThrow('Kafka has no topic');
  });
});
