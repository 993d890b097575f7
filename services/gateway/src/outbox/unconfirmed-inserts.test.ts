import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message/message.ts';
import { createUnconfirmedInserts, type UnconfirmedInserts } from './unconfirmed-inserts.ts';

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
