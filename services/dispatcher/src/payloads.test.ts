import { beforeEach, describe, expect, it } from '@jest/globals';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import {
  createPayloadLoader,
  createPayloadMemory,
  type PayloadMemory,
  type ReservedPayload,
} from './payloads.ts';

const stored = (payload: string) => ({
  companyId: 'comp_a',
  payload,
  isErased: payload === '',
  requestId: 'req_1',
  traceparent: '00-1',
  eventType: 'order.paid',
});

const textOf = (found: Awaited<ReturnType<ReservedPayload['load']>>) =>
  found === null || found === 'erased' ? found : String(found.bytes);

it('loads a payload for the company of its message only', async () => {
  const asked: string[] = [];
  const payloadsOf = (ids: readonly string[]) => {
    asked.push(...ids);
    return Promise.resolve(new Map([['msg_1', stored('{"n":1}')]]));
  };
  const { load } = createPayloadLoader({ payloadsOf }, 1_000_000, keepTrying);
  expect(await load('comp_a', 'msg_1')).toEqual({
    bytes: Buffer.from('{"n":1}'),
    headers: { requestId: 'req_1', traceparent: '00-1', 'event-type': 'order.paid' },
  });
  expect(await load('comp_b', 'msg_1')).toBeNull();
  expect(await load('comp_a', 'msg_2')).toBeNull();
  expect(asked).toEqual(['msg_1', 'msg_2']);
});

it('distinguishes an erased payload from a missing one, and drops one that was cached before', async () => {
  let found = stored('{"n":1}');
  const payloadsOf = () => Promise.resolve(new Map([['msg_1', found]]));
  const { load, forget } = createPayloadLoader({ payloadsOf }, 1_000_000, keepTrying);
  await load('comp_a', 'msg_1');
  found = stored('');
  expect(textOf(await load('comp_a', 'msg_1'))).toBe('{"n":1}');
  forget('msg_1');
  expect(await load('comp_a', 'msg_1')).toBe('erased');
  expect([await load('comp_b', 'msg_1'), await load('comp_a', 'msg_2')]).toEqual([null, null]);
});

describe('payload memory', () => {
  const KIB = 1_024;
  /** What a payload counts for until it is loaded. */
  const RESERVED = 64 * KIB;
  /** Enough for four that are not loaded yet, two of each company. */
  const BUDGET = 4 * RESERVED;

  let memory: PayloadMemory;
  /** Payloads that can be loaded, by message id. */
  let stored: Map<string, number>;
  let freed: number;

  beforeEach(() => {
    stored = new Map();
    freed = 0;
    memory = createPayloadMemory((_companyId, messageId) => {
      const bytes = stored.get(messageId);
      if (bytes === -1) return Promise.reject(new Error('gone'));
      return Promise.resolve(
        bytes === undefined ? null : { bytes: Buffer.alloc(bytes), headers: {} },
      );
    }, BUDGET);
    memory.onFreed(() => (freed += 1));
  });

  describe('a payload of an attempt under way', () => {
    it('counts with its size once it is loaded, and not after its release', async () => {
      stored.set('m1', 100 * KIB);
      const one = memory.reserve('a');
      expect(memory.usedBytes()).toBe(RESERVED);
      expect(textOf(await one.load('m1'))).toHaveLength(100 * KIB);
      expect([memory.usedBytes(), freed]).toEqual([100 * KIB, 0]);
      one.release();
      one.release();
      expect([memory.usedBytes(), freed]).toEqual([0, 1]);
    });

    it('frees what was reserved for it when it is small, or not stored any more', async () => {
      stored.set('m1', KIB);
      await memory.reserve('a').load('m1');
      expect(await memory.reserve('a').load('m2')).toBeNull();
      expect([memory.usedBytes(), freed]).toEqual([KIB, 2]);
    });

    it('counts as reserved when it cannot be loaded, until its release', async () => {
      stored.set('m1', -1);
      const one = memory.reserve('a');
      await expect(one.load('m1')).rejects.toThrow('gone');
      expect(memory.usedBytes()).toBe(RESERVED);
      one.release();
      expect(memory.usedBytes()).toBe(0);
    });

    it('counts no more when it is loaded after its release', async () => {
      stored.set('m1', KIB);
      const one = memory.reserve('a');
      const loading = one.load('m1');
      one.release();
      await loading;
      expect(memory.usedBytes()).toBe(0);
    });
  });

  describe('the room for payloads', () => {
    it('is half of the budget for a company, and the rest is for others', () => {
      memory.reserve('a');
      expect(memory.hasRoom('a')).toBe(true);
      memory.reserve('a');
      expect([memory.hasRoom('a'), memory.hasRoom('b')]).toEqual([false, true]);
      memory.reserve('b');
      memory.reserve('c');
      expect(memory.hasRoom('d')).toBe(false);
    });

    it('is there again after one payload that exceeds the whole budget', async () => {
      stored.set('m1', 2 * BUDGET);
      const one = memory.reserve('a');
      await one.load('m1');
      expect(memory.hasRoom('b')).toBe(false);
      one.release();
      expect(memory.hasRoom('b')).toBe(true);
    });
  });
});
