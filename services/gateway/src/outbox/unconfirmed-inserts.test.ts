import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { createDoubts, type Doubts } from './unconfirmed-inserts.ts';

const MINUTE_MS = 60_000;

let stored: Message[] = [];
let asked: (readonly string[])[] = [];
let published: string[][] = [];
let isKafkaUp = true;
let nowMs = 0;
let doubts: Doubts;

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
  disabledTargets: [],
  idempotency: null,
});

beforeEach(() => {
  [stored, asked, published, isKafkaUp, nowMs] = [[], [], [], true, 0];
  doubts = createDoubts({
    messages: {
      findDecided: (ids) => {
        asked.push(ids);
        return Promise.resolve(stored.filter(({ id }) => ids.includes(id)));
      },
    },
    publishLate: (late) => {
      published.push(late.map(({ id }) => id));
      return isKafkaUp ? Promise.resolve() : Promise.reject(new Error('Kafka is away'));
    },
    nowMs: () => nowMs,
  });
});

describe('a doubtful insert', () => {
  test('that turns up is published once and forgotten', async () => {
    doubts.add([message('msg_2'), message('msg_3')]);
    stored = [message('msg_2')];
    await doubts.tick();
    await doubts.tick();
    expect(published.flat()).toEqual(['msg_2']);
    expect(asked).toEqual([['msg_2', 'msg_3'], ['msg_3']]);
  });

  test('holds the watermark below the oldest one', () => {
    doubts.add([message('msg_50'), message('msg_30')]);
    const held = doubts.hold('msg_90');
    expect(held < 'msg_30').toBe(true);
    expect(held > 'msg_29').toBe(true);
  });

  test('leaves a watermark alone that has not reached it', () => {
    doubts.add([message('msg_5')]);
    expect(doubts.hold('msg_4')).toBe('msg_4');
    expect(doubts.hold('')).toBe('');
  });

  test('holds the watermark when it is the watermark itself', () => {
    doubts.add([message('msg_5')]);
    expect(doubts.hold('msg_5') < 'msg_5').toBe(true);
  });

  test('lets the watermark go when it was published', async () => {
    doubts.add([message('msg_5')]);
    stored = [message('msg_5')];
    await doubts.tick();
    expect(doubts.hold('msg_9')).toBe('msg_9');
  });

  test('stays one while Kafka does not take it', async () => {
    doubts.add([message('msg_5')]);
    stored = [message('msg_5')];
    isKafkaUp = false;
    await expect(doubts.tick()).rejects.toThrow('Kafka is away');
    expect(doubts.hold('msg_9')).not.toBe('msg_9');
    isKafkaUp = true;
    await doubts.tick();
    expect(doubts.hold('msg_9')).toBe('msg_9');
  });

  test('is given up when it is still absent after a minute, not before', async () => {
    doubts.add([message('msg_5')]);
    nowMs = MINUTE_MS;
    await doubts.tick();
    expect(doubts.hold('msg_9')).not.toBe('msg_9');
    nowMs = MINUTE_MS + 1;
    await doubts.tick();
    expect(doubts.hold('msg_9')).toBe('msg_9');
    expect(published.flat()).toEqual([]);
  });

  test('that turns up at the last moment is published, not given up', async () => {
    doubts.add([message('msg_5')]);
    stored = [message('msg_5')];
    nowMs = 10 * MINUTE_MS;
    await doubts.tick();
    expect(published.flat()).toEqual(['msg_5']);
  });
});

test('without a doubt nobody is asked', async () => {
  await doubts.tick();
  expect([asked, doubts.hold('msg_9')]).toEqual([[], 'msg_9']);
});
