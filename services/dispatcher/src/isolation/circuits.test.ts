import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Outcome, Trigger } from '@posthorn/domain/delivery/delivery.ts';
import type { CircuitReport } from './circuit.ts';
import { Circuits } from './circuits.ts';

const RESET_MS = 30_000;
const endpoint = { webhookId: 'wh_1', companyId: 'comp_1', url: 'https://one.example/' };
const other = { webhookId: 'wh_2', companyId: 'comp_1', url: 'https://two.example/' };

let shared: Map<string, number>;
let logged: unknown[];
let told: unknown[];
let circuits: Circuits;

beforeEach(() => {
  jest.useFakeTimers();
  [shared, logged, told] = [new Map<string, number>(), [], []];
  circuits = open();
});
afterEach(() => {
  circuits.stop();
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

function open(maxCircuits = 100): Circuits {
  const opened = new Circuits({
    shared: {
      takeOver: () => Promise.resolve({ found: new Map(), read: [] }),
      opened: ({ webhookId }, { probeAtMs }) => shared.set(webhookId, probeAtMs),
      closed: ({ webhookId }) => shared.delete(webhookId),
    },
    partitionOf: () => 0,
    logger: { info: (...line: unknown[]) => void logged.push(line), warn: () => undefined },
    report: ({ type, webhookId }) => void told.push([type, webhookId]),
    nowMs: Date.now,
    resetMs: RESET_MS,
    maxCircuits,
  });
  void opened.own(new Set([0]));
  return opened;
}

function reportOf(outcome: Outcome, more: Partial<CircuitReport> = {}): CircuitReport {
  return { outcome, asksForPause: false, recentSuccesses: 0, ...more };
}

async function attempt(outcome: Outcome, times: number, to = endpoint): Promise<void> {
  for (let n = 0; n < times; n += 1) await circuits.beginAttempt(to)(reportOf(outcome));
}

function blockedUntilMs(to = endpoint, trigger: Trigger = 'first'): number | null {
  circuits.refresh(to);
  const view = circuits.viewOf({ ...to, trigger, deferredSinceMs: null });
  return view.kind === 'closed' ? null : Date.now() + view.deferForMs;
}

describe('a circuit', () => {
  it('opens when more than half of ten attempts failed, for its own endpoint only', async () => {
    await attempt('timeout', 9);
    expect(blockedUntilMs()).toBeNull();
    await attempt('http_5xx', 1);
    expect(blockedUntilMs()).toBe(Date.now() + RESET_MS);
    expect(blockedUntilMs(other)).toBeNull();
  });

  it('is logged and told to the operator with its webhook and company when it opens and when it closes', async () => {
    await attempt('timeout', 10);
    jest.advanceTimersByTime(RESET_MS);
    await attempt('success', 1);
    const ids = { webhookId: 'wh_1', companyId: 'comp_1' };
    expect(logged).toEqual([
      [{ ...ids, resetMs: RESET_MS }, 'circuit open'],
      [ids, 'circuit closed'],
    ]);
    expect(told).toEqual([
      ['circuit.opened', 'wh_1'],
      ['circuit.closed', 'wh_1'],
    ]);
  });

  it('is told to the operator once, however many probes fail', async () => {
    await attempt('timeout', 10);
    for (let n = 0; n < 5; n += 1) {
      jest.advanceTimersByTime(RESET_MS);
      await attempt('timeout', 1);
      expect(shared.get('wh_1')).toBe(Date.now() + RESET_MS);
    }
    expect(told).toEqual([['circuit.opened', 'wh_1']]);
  });

  it('is told to the operator as closed when its URL was changed, if it was open', async () => {
    await attempt('timeout', 10);
    await attempt('timeout', 1, other);
    for (const { webhookId } of [endpoint, other]) {
      circuits.refresh({ ...endpoint, webhookId, url: 'https://new.example/' });
    }
    expect(told).toEqual([
      ['circuit.opened', 'wh_1'],
      ['circuit.closed', 'wh_1'],
    ]);
  });

  it('counts successes from before the first failure, so that a short fault of a busy endpoint does not open it', async () => {
    const fault = reportOf('connect_error', { recentSuccesses: 100 });
    for (let n = 0; n < 100; n += 1) await circuits.beginAttempt(endpoint)(fault);
    expect(blockedUntilMs()).toBeNull();
    await circuits.beginAttempt(endpoint)(fault);
    expect(blockedUntilMs()).not.toBeNull();
  });

  it('stays closed while half of the attempts succeed', async () => {
    for (let n = 0; n < 40; n += 1) await attempt(n % 2 === 0 ? 'http_5xx' : 'success', 1);
    expect(blockedUntilMs()).toBeNull();
  });

  it('does not exist before the first failure, nor after two minutes without one', async () => {
    await attempt('success', 5);
    expect(circuits.count().closed).toBe(0);
    await attempt('http_5xx', 1);
    expect(circuits.count().closed).toBe(1);
    jest.advanceTimersByTime(180_000);
    expect(circuits.count().closed).toBe(0);
  });

  it('has no timer of its own while it is closed', async () => {
    const before = jest.getTimerCount();
    for (let n = 0; n < 100; n += 1)
      await attempt('timeout', 1, { ...endpoint, webhookId: `wh_${n}` });
    expect(jest.getTimerCount()).toBe(before);
  });

  it('forgets failures that are older than two minutes', async () => {
    await attempt('http_5xx', 9);
    jest.advanceTimersByTime(150_000);
    await attempt('http_5xx', 1);
    expect(blockedUntilMs()).toBeNull();
  });

  it('stays open when an attempt to the former URL ends', async () => {
    const endFormer = circuits.beginAttempt(endpoint);
    const moved = { ...endpoint, url: 'https://moved.example/' };
    await attempt('timeout', 10, moved);
    await endFormer(reportOf('success'));
    expect(blockedUntilMs(moved)).toBe(Date.now() + RESET_MS);
  });

  it('starts closed for another URL of the same webhook', async () => {
    await attempt('timeout', 10);
    expect(blockedUntilMs({ ...endpoint, url: 'https://moved.example/' })).toBeNull();
    expect(shared.size).toBe(0);
  });
});

describe('an open circuit', () => {
  beforeEach(async () => {
    await attempt('timeout', 10);
    expect(circuits.count().open).toBe(1);
  });

  it('allows one probe after its time, and other attempts only when that is over', async () => {
    jest.advanceTimersByTime(RESET_MS);
    expect(circuits.count().half_open).toBe(1);
    expect(blockedUntilMs()).toBeNull();
    const report = circuits.beginAttempt(endpoint);
    expect(blockedUntilMs()).not.toBeNull();
    await report(reportOf('success'));
    expect(blockedUntilMs()).toBeNull();
    expect(circuits.count()).toEqual({ closed: 0, open: 0, half_open: 0 });
    await attempt('http_5xx', 9);
    expect(blockedUntilMs()).toBeNull();
  });

  it('stays open for another reset when the probe fails', async () => {
    jest.advanceTimersByTime(RESET_MS);
    await attempt('connect_error', 1);
    expect(blockedUntilMs()).toBe(Date.now() + RESET_MS);
  });

  it('waits for no more than one reset after the clock was set back', async () => {
    await attempt('timeout', 10);
    jest.setSystemTime(Date.now() - 3_600_000);
    expect(blockedUntilMs()).toBe(Date.now() + RESET_MS);
    jest.advanceTimersByTime(2 * RESET_MS);
    expect(blockedUntilMs()).toBeNull();
  });

  it('allows another probe when one was not made after all', async () => {
    jest.advanceTimersByTime(RESET_MS);
    await circuits.beginAttempt(endpoint)(null);
    expect(blockedUntilMs()).toBeNull();
    expect(circuits.count().half_open).toBe(1);
  });

  it('is not closed by an attempt that began before it opened', async () => {
    circuits.stop();
    circuits = open();
    const late = circuits.beginAttempt(endpoint);
    await attempt('timeout', 10);
    await late(reportOf('success'));
    expect(circuits.count().open).toBe(1);
    jest.advanceTimersByTime(RESET_MS);
    expect(circuits.count().half_open).toBe(1);
  });

  it('accepts a test as its probe at once, one at a time', async () => {
    expect(blockedUntilMs(endpoint, 'test')).toBeNull();
    const report = circuits.beginAttempt(endpoint);
    expect(blockedUntilMs(endpoint, 'test')).not.toBeNull();
    await report(reportOf('success'));
    expect(blockedUntilMs()).toBeNull();
  });

  it('accepts a resend as its probe five seconds after the last failure', async () => {
    expect(blockedUntilMs(endpoint, 'resend')).not.toBeNull();
    jest.advanceTimersByTime(5_000);
    expect(blockedUntilMs(endpoint, 'resend')).toBeNull();
    await attempt('http_5xx', 1);
    expect(blockedUntilMs(endpoint, 'resend')).not.toBeNull();
  });
});

it('keeps a bounded number of circuits, those with the newest failures', async () => {
  circuits.stop();
  circuits = open(2);
  await attempt('timeout', 10, { ...endpoint, webhookId: 'wh_a' });
  await attempt('timeout', 1, { ...endpoint, webhookId: 'wh_b' });
  await attempt('timeout', 1, { ...endpoint, webhookId: 'wh_c' });
  expect(circuits.count()).toEqual({ closed: 2, open: 0, half_open: 0 });
});
