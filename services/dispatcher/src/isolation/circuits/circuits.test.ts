import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Trigger } from '@posthorn/domain/delivery.ts';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { Shown } from './when-circuit-opens.ts';
import { createCircuits, type Circuits } from './circuits.ts';

const RESET_MS = 30_000;
const endpoint = { id: 'wh_1', url: 'https://one.example/' };
const other = { id: 'wh_2', url: 'https://two.example/' };

let shared: Map<string, number>;
let circuits: Circuits;

beforeEach(() => {
  jest.useFakeTimers();
  shared = new Map();
  circuits = open();
});
afterEach(() => {
  circuits.stop();
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

function open(maxCircuits = 100): Circuits {
  return createCircuits({
    shared: {
      readAll: () => Promise.resolve(new Map(shared)),
      opened: (id, untilMs) => shared.set(id, untilMs),
      closed: (id) => shared.delete(id),
    },
    logger: { info: () => undefined, warn: () => undefined },
    nowMs: Date.now,
    resetMs: RESET_MS,
    maxCircuits,
  });
}

function shown(outcome: Outcome, more: Partial<Shown> = {}): Shown {
  return { outcome, asksForPause: false, succeededLately: 0, ...more };
}

async function make(outcome: Outcome, times: number, to = endpoint): Promise<void> {
  for (let n = 0; n < times; n += 1) await circuits.permit(to)(shown(outcome));
}

const opensAtMs = (to = endpoint, trigger: Trigger = 'first'): number | null =>
  circuits.obstacle(to, trigger)?.untilMs ?? null;

describe('a circuit', () => {
  it('opens when more than half of ten attempts failed, and for its own endpoint only', async () => {
    await make('timeout', 9);
    expect(opensAtMs()).toBeNull();
    await make('http_5xx', 1);
    expect(opensAtMs()).toBe(Date.now() + RESET_MS);
    expect(opensAtMs(other)).toBeNull();
  });

  it.each<Outcome>(['timeout', 'http_5xx', 'http_429', 'connect_error', 'dns_error', 'tls_error'])(
    'opens for %s',
    async (outcome) => {
      await make(outcome, 10);
      expect(opensAtMs()).not.toBeNull();
    },
  );

  it('stays closed for an endpoint that answers, but refuses what it gets', async () => {
    await make('http_4xx', 50);
    await make('http_3xx', 50);
    expect(opensAtMs()).toBeNull();
    expect(circuits.count()).toEqual({ closed: 0, open: 0, half_open: 0 });
  });

  it('stays closed for an endpoint that says when to come again', async () => {
    for (let n = 0; n < 50; n += 1) {
      await circuits.permit(endpoint)(shown('http_429', { asksForPause: true }));
    }
    expect(opensAtMs()).toBeNull();
  });

  it('counts what succeeded before the first failure: a short fault of a busy endpoint is none', async () => {
    const fault = shown('connect_error', { succeededLately: 100 });
    for (let n = 0; n < 100; n += 1) await circuits.permit(endpoint)(fault);
    expect(opensAtMs()).toBeNull();
    await circuits.permit(endpoint)(fault);
    expect(opensAtMs()).not.toBeNull();
  });

  it('stays closed while half of the attempts succeed', async () => {
    for (let n = 0; n < 40; n += 1) await make(n % 2 === 0 ? 'http_5xx' : 'success', 1);
    expect(opensAtMs()).toBeNull();
  });

  it('costs nothing before the first failure, and nothing after two minutes without one', async () => {
    await make('success', 5);
    expect(circuits.count().closed).toBe(0);
    await make('http_5xx', 1);
    expect(circuits.count().closed).toBe(1);
    jest.advanceTimersByTime(180_000);
    expect(circuits.count().closed).toBe(0);
  });

  it('has no timer of its own while it is closed', async () => {
    const before = jest.getTimerCount();
    for (let n = 0; n < 100; n += 1) await make('timeout', 1, { ...endpoint, id: `wh_${n}` });
    expect(jest.getTimerCount()).toBe(before);
  });

  it('forgets failures that are older than two minutes', async () => {
    await make('http_5xx', 9);
    jest.advanceTimersByTime(150_000);
    await make('http_5xx', 1);
    expect(opensAtMs()).toBeNull();
  });

  it('begins closed for another address of the same webhook', async () => {
    await make('timeout', 10);
    expect(opensAtMs({ ...endpoint, url: 'https://moved.example/' })).toBeNull();
    expect(shared.size).toBe(0);
  });
});

describe('an open circuit', () => {
  beforeEach(async () => {
    await make('timeout', 10);
    expect(circuits.count().open).toBe(1);
  });

  it('lets one probe through after its time, and others only when that is over', async () => {
    jest.advanceTimersByTime(RESET_MS);
    expect(circuits.count().half_open).toBe(1);
    expect(opensAtMs()).toBeNull();
    const report = circuits.permit(endpoint);
    expect(opensAtMs()).not.toBeNull();
    await report(shown('success'));
    expect(opensAtMs()).toBeNull();
    expect(circuits.count()).toEqual({ closed: 0, open: 0, half_open: 0 });
    await make('http_5xx', 9);
    expect(opensAtMs()).toBeNull();
  });

  it('opens anew when the probe fails', async () => {
    jest.advanceTimersByTime(RESET_MS);
    await make('connect_error', 1);
    expect(opensAtMs()).toBe(Date.now() + RESET_MS);
  });

  it('waits for another probe when one was not made after all', async () => {
    jest.advanceTimersByTime(RESET_MS);
    await circuits.permit(endpoint)(null);
    expect(opensAtMs()).toBeNull();
    expect(circuits.count().half_open).toBe(1);
  });

  it('is closed by nothing that was begun before it opened', async () => {
    circuits.stop();
    circuits = open();
    const late = circuits.permit(endpoint);
    await make('timeout', 10);
    await late(shown('success'));
    expect(circuits.count().open).toBe(1);
    jest.advanceTimersByTime(RESET_MS);
    expect(circuits.count().half_open).toBe(1);
  });

  it('takes a test as its probe at once, one at a time', async () => {
    expect(opensAtMs(endpoint, 'test')).toBeNull();
    const report = circuits.permit(endpoint);
    expect(opensAtMs(endpoint, 'test')).not.toBeNull();
    await report(shown('success'));
    expect(opensAtMs()).toBeNull();
  });

  it('takes a resend as its probe when five seconds have passed since the last failure', async () => {
    expect(opensAtMs(endpoint, 'resend')).not.toBeNull();
    jest.advanceTimersByTime(5_000);
    expect(opensAtMs(endpoint, 'resend')).toBeNull();
    await make('http_5xx', 1);
    expect(opensAtMs(endpoint, 'resend')).not.toBeNull();
  });
});

it('keeps a bounded number of circuits, those that failed last', async () => {
  circuits.stop();
  circuits = open(2);
  await make('timeout', 10, { ...endpoint, id: 'wh_a' });
  await make('timeout', 1, { ...endpoint, id: 'wh_b' });
  await make('timeout', 1, { ...endpoint, id: 'wh_c' });
  expect(circuits.count()).toEqual({ closed: 2, open: 0, half_open: 0 });
});
