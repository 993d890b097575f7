import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createPublication, type Publication, type PublicationState } from './publish-created.ts';

/** A company that is alone may hold half of it: 300 small messages. */
const QUEUE_BYTES = 2 * 300 * 1_086;
/** Many more than are kept in memory. */
const TOO_MANY = 2_001;

let stored: Message[] = [];
let sends: string[][] = [];
let nowMs = 0;
let failuresLeft = 0;
let onSend: (ids: string[]) => void;
/** Resolved while Kafka answers at once. */
let gate: Promise<void>;
let open: () => void;
let publication: Publication;

beforeEach(() => {
  [stored, sends, nowMs, failuresLeft] = [[], [], 1_000, 0];
  gate = Promise.resolve();
  onSend = () => undefined;
  publication = createPublication({
    topic: 'created',
    publisherId: 'gw_1',
    logger: createLogger('test', 'silent'),
    publishQueueBytes: QUEUE_BYTES,
    nowMs: () => nowMs,
    log: { publish },
    messages: {
      pageOf: ({ publisherId, afterId, limit }) => {
        const rest = stored.filter((one) => one.publisherId === publisherId && one.id > afterId);
        return Promise.resolve(rest.slice(0, limit));
      },
    },
  });
});

async function publish(records: readonly OutgoingRecord[]): Promise<void> {
  const ids = records.map(({ value }) => decodeMessageCreated(value).messageId);
  sends.push(ids);
  onSend(ids);
  await gate;
  if (failuresLeft-- > 0) throw new Error('Kafka is away');
}

/** Kafka answers nothing until `open` is called. */
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
    disabledTargets: [],
    idempotency: null,
    createdAtMs: number,
    ...changes,
  }));
  stored.push(...batch);
  publication.add(batch);
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const idsOf = (messages: readonly Message[]) => messages.map(({ id }) => id);

describe('the publication', () => {
  test('sends in the order of the ids, one produce at a time', async () => {
    shut();
    accept([1]);
    accept([2, 3]);
    accept([4]);
    expect(sends).toEqual([['msg_000001']]);
    open();
    await publication.close(5_000);
    expect(sends).toEqual([['msg_000001'], ['msg_000002', 'msg_000003', 'msg_000004']]);
  });

  test('raises the watermark to what Kafka has, and not before', async () => {
    expect(publication.state()).toEqual({ watermark: '', unpublished: 0, behindMs: null });
    shut();
    accept([1, 2]);
    expect(publication.state()).toEqual({ watermark: '', unpublished: 2, behindMs: 999 });
    open();
    await publication.close(5_000);
    expect(publication.state()).toEqual({
      watermark: 'msg_000002',
      unpublished: 0,
      behindMs: null,
    });
  });

  test('passes messages that no webhook gets, so that the watermark goes on', async () => {
    accept([1], { targets: [] });
    await publication.close(5_000);
    expect(publication.state()).toMatchObject({ watermark: 'msg_000001', unpublished: 0 });
  });

  test('tells how long the oldest message waits, never a negative time', () => {
    shut();
    accept([900, 990]);
    expect(publication.state().behindMs).toBe(100);
    nowMs = 500;
    expect(publication.state().behindMs).toBe(0);
  });

  test('sends the same again while Kafka fails, and nothing behind it', async () => {
    failuresLeft = 1;
    accept([1]);
    accept([2]);
    await publication.close(5_000);
    expect(sends).toEqual([['msg_000001'], ['msg_000001'], ['msg_000002']]);
    expect(publication.state()).toMatchObject({ watermark: 'msg_000002', unpublished: 0 });
  });

  test('leaves to the sweeper what Kafka does not take until the end of the stop', async () => {
    failuresLeft = Infinity;
    accept([1, 2]);
    await publication.close(0);
    expect(publication.state()).toMatchObject({ watermark: '', unpublished: 2 });
  });

  test('has nothing to do at a stop when nothing waits', async () => {
    await publication.close(0);
    expect(sends).toEqual([]);
  });
});

describe('a publication that falls behind', () => {
  test('leaves to the store what does not fit, and reads everything back exactly once', async () => {
    shut();
    accept([1]);
    for (const number of upTo(TOO_MANY)) accept([number + 1]);
    expect(publication.state().unpublished).toBeLessThan(TOO_MANY);
    open();
    await publication.close(60_000);
    expect(sends.flat()).toEqual(idsOf(stored));
    expect(publication.state()).toEqual({
      watermark: stored.at(-1)?.id,
      unpublished: 0,
      behindMs: null,
    });
  });

  test('counts the size of the payloads too', async () => {
    shut();
    accept(upTo(30), { payload: `"${'x'.repeat(16_000)}"` });
    expect(publication.state().unpublished).toBe(19);
    open();
    await publication.close(60_000);
    expect(sends.flat()).toEqual(idsOf(stored));
  });

  test('takes what is stored while it reads the last page, and goes on as before after it', async () => {
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
    expect(sends.flat()).toEqual(idsOf(stored));
    expect(sends.slice(-2)).toEqual([['msg_050000'], ['msg_050001']]);
  });

  test('says so until it has read the last page, and how long the oldest has waited', async () => {
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

  test('weighs what it keeps, and never more than a page above its share', async () => {
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
