import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Response } from 'express';
import { EventEmitter } from 'node:events';
import { addressOf, createRequestMemory, type RequestMemory } from './request-memory.ts';

const BUDGET = 1_000;

let memory: RequestMemory;

beforeEach(() => {
  memory = createRequestMemory(BUDGET);
});

/** As much of a response as memory uses. */
class FakeResponse extends EventEmitter {
  closed = false;
  readonly locals: object;
  constructor(companyId: string) {
    super();
    this.locals = { caller: { companyId } };
  }
  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

function responseTo(companyId = 'comp_a'): { fake: FakeResponse; response: Response } {
  const fake = new FakeResponse(companyId);
  return { fake, response: fake as unknown as Response };
}

function openWork(): { work: Promise<void>; fail: () => Promise<void> } {
  let reject: (error: Error) => void = () => undefined;
  const work = new Promise<void>((_, refuse) => (reject = refuse));
  return {
    work,
    async fail() {
      reject(new Error('away'));
      await new Promise(setImmediate);
    },
  };
}

describe('what a request holds [security]', () => {
  test('is released when its response closes', () => {
    const { fake, response } = responseTo();
    expect(memory.tryReserve(response, 100)).toBe(true);
    memory.reserve(response, 50);
    expect(memory.usedBytes()).toBe(150);
    fake.close();
    expect(memory.usedBytes()).toBe(0);
  });

  test('is kept after its response while its work goes on, also when that fails', async () => {
    const { fake, response } = responseTo();
    const { work, fail } = openWork();
    memory.tryReserve(response, 100);
    memory.keepUntil(response, work);
    fake.close();
    expect(memory.usedBytes()).toBe(100);
    memory.reserve(response, 7);
    expect(memory.usedBytes()).toBe(107);
    await fail();
    expect(memory.usedBytes()).toBe(0);
  });

  test('counts nothing more once everything has ended', async () => {
    const { fake, response } = responseTo();
    memory.tryReserve(response, 100);
    fake.close();
    memory.reserve(response, 7);
    memory.keepUntil(response, Promise.resolve());
    await new Promise(setImmediate);
    expect(memory.usedBytes()).toBe(0);
  });
});

describe('what is about to be read for a request [security]', () => {
  test('is refused with 503 when its company holds too much, and not for another company', () => {
    memory.reserve(responseTo().response, 450);
    const refused = { status: 503, code: 'unavailable' };
    expect(() => {
      memory.reserveOrRefuse(responseTo().response, 150);
    }).toThrow(expect.objectContaining(refused));
    memory.reserveOrRefuse(responseTo('comp_b').response, 150);
    expect(memory.usedBytes()).toBe(600);
  });

  test('counts at most as a quarter of the budget, so that the largest is answered too', () => {
    memory.reserveOrRefuse(responseTo().response, 50 * BUDGET);
    expect(memory.usedBytes()).toBe(BUDGET / 4);
  });
});

describe('what a request holds before its company is known [security]', () => {
  /** As express makes it, before authentication. */
  const responseFrom = (ip: string): Response =>
    Object.assign(new EventEmitter(), { closed: false, req: { ip } }) as unknown as Response;

  beforeEach(() => {
    memory = createRequestMemory(BUDGET, addressOf);
  });

  test('is counted for its address: half of the budget for one, and something for the next', () => {
    for (let n = 0; n < 5; n += 1)
      expect(memory.tryReserve(responseFrom('192.0.2.1'), 100)).toBe(true);
    expect(memory.tryReserve(responseFrom('192.0.2.1'), 100)).toBe(false);
    expect(memory.tryReserve(responseFrom('::ffff:192.0.2.1'), 100)).toBe(false);
    expect(memory.tryReserve(responseFrom('192.0.2.2'), 100)).toBe(true);
  });

  test('is counted while work goes on, and no longer, also when it fails', async () => {
    const { work, fail } = openWork();
    const counted = memory.countWhile(responseFrom('192.0.2.1'), 500, () => work);
    expect(memory.usedBytes()).toBe(500);
    const another = memory.countWhile(responseFrom('192.0.2.1'), 1, () => Promise.resolve());
    await expect(another).rejects.toMatchObject({ status: 503, reason: 'share_full' });
    await Promise.all([expect(counted).rejects.toThrow('away'), fail()]);
    expect(memory.usedBytes()).toBe(0);
  });
});
