import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Trigger } from '@posthorn/domain/delivery.ts';
import { decodeRetryDue } from '@posthorn/domain/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { Counter, Registry } from 'prom-client';
import { sampleDue, sampleRecord } from '../../../test/support/sample-record.ts';
import type { Obstacle } from './judge-endpoint.ts';
import { createPassCircuit, DEFERRED_SINCE_HEADER } from './pass-circuit.ts';
import { createPutOff } from './put-off.ts';

const NOW_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const endpoint = { id: 'wh_1', url: 'https://one.example/' };
const SCHEDULE = new Map([
  [5_000, '5s'],
  [300_000, '5m'],
  [1_800_000, '30m'],
  [2 * HOUR_MS, '2h'],
  [5 * HOUR_MS, '5h'],
  [10 * HOUR_MS, '10h'],
]);

let parked: OutgoingRecord[];
let nowMs: number;

beforeEach(() => {
  [parked, nowMs] = [[], NOW_MS];
});

function circuitWith(obstacle: (trigger: Trigger) => Obstacle | null, topics = SCHEDULE) {
  const putOff = createPutOff({
    log: {
      publish(records) {
        parked.push(...records);
        return Promise.resolve();
      },
    },
    parkedByDelayMs: topics,
    nowMs: () => nowMs,
  });
  return createPassCircuit({
    ...{ putOff, nowMs: () => nowMs },
    circuits: { obstacle: (_endpoint, trigger) => obstacle(trigger), permit: () => permit },
    longestDelayMs: Math.max(...topics.keys()),
    wait: (ms) => {
      nowMs += ms;
      return Promise.resolve();
    },
    deferrals: new Counter({ name: 'deferrals', help: 'x', registers: [new Registry()] }),
  });
}

const open = (): Obstacle => ({ untilMs: nowMs + 30_000, probe: null });
const permit = (): Promise<void> => Promise.resolve();

describe('an attempt at an endpoint', () => {
  it('is made at once while nothing stands against it', async () => {
    const circuit = circuitWith(() => null);
    expect(await circuit.isPutOff(sampleRecord(), sampleDue(), endpoint)).toBe(false);
    expect(await circuit.enter(sampleRecord(), sampleDue(), endpoint)).toBe(permit);
  });

  it('is put off by an open circuit for at least its time, and is the same attempt after', async () => {
    const due = sampleDue({ attemptNumber: 3, trigger: 'retry' });
    expect(await circuitWith(open).isPutOff(sampleRecord(), due, endpoint)).toBe(true);
    expect(parked).toMatchObject([{ topic: '5m', key: 'wh_1', headers: { requestId: 'req_1' } }]);
    const value = decodeRetryDue(parked[0]?.value ?? Buffer.alloc(0));
    expect(value).toMatchObject({ attemptNumber: 3, trigger: 'retry', dueAtMs: nowMs + 300_000 });
  });

  it('waits longer each time the circuit is still open, and is made whatever it says after half a day', async () => {
    const circuit = circuitWith(open);
    const waited: string[] = [];
    let record = sampleRecord();
    while (!(await circuit.enter(record, sampleDue(), endpoint))) {
      const { topic = '', headers = {} } = parked.at(-1) ?? {};
      waited.push(topic);
      record = sampleRecord(headers);
      nowMs = Number(headers['due-at']);
    }
    expect(waited).toEqual(['5m', '30m', '2h', '10h']);
    expect(nowMs - NOW_MS).toBeGreaterThan(12 * HOUR_MS);
    expect(record.headers[DEFERRED_SINCE_HEADER]).toBe(String(NOW_MS));
  });

  it('comes back and asks again where a delay is the longest there is', async () => {
    const circuit = circuitWith(open, new Map([[60_000, '1m']]));
    const since = String(nowMs - HOUR_MS);
    await circuit.enter(sampleRecord({ [DEFERRED_SINCE_HEADER]: since }), sampleDue(), endpoint);
    expect(parked).toMatchObject([{ topic: '1m', headers: { 'turn-at': String(nowMs + 60_000) } }]);
  });

  it('keeps its turn where no delay is as long as the circuit is open', async () => {
    const circuit = circuitWith(open, new Map([[1_000, '1s']]));
    await circuit.enter(sampleRecord(), sampleDue(), endpoint);
    const headers = { 'due-at': String(nowMs + 1_000), 'turn-at': String(nowMs + 30_000) };
    expect(parked).toMatchObject([{ topic: '1s', headers }]);
  });
});

describe('an attempt that comes while another one probes the endpoint', () => {
  const probing = (ended = Promise.resolve(), sinceMs = nowMs): Obstacle => ({
    untilMs: nowMs + 30_000,
    probe: { sinceMs, ended },
  });

  it('stands in line meanwhile, and is made when the probe has closed the circuit', async () => {
    const obstacles = [probing(), probing(), null];
    const circuit = circuitWith(() => obstacles.shift() ?? null);
    expect(await circuit.isPutOff(sampleRecord(), sampleDue(), endpoint)).toBe(false);
    expect(await circuit.enter(sampleRecord(), sampleDue(), endpoint)).toBe(permit);
    expect(parked).toEqual([]);
  });

  it('is put off when the probe has failed', async () => {
    const obstacles = [probing(), open()];
    const circuit = circuitWith(() => obstacles.shift() ?? null);
    expect(await circuit.enter(sampleRecord(), sampleDue(), endpoint)).toBeNull();
    expect(parked).toHaveLength(1);
  });

  it('is put off when the probe takes long', async () => {
    const never = new Promise<void>(() => undefined);
    const circuit = circuitWith(() => probing(never));
    expect(await circuit.enter(sampleRecord(), sampleDue(), endpoint)).toBeNull();
    expect(nowMs - NOW_MS).toBe(500);
  });

  it('does not even stand in line when the probe has taken long already', async () => {
    const circuit = circuitWith(() => probing(Promise.resolve(), nowMs - 500));
    expect(await circuit.isPutOff(sampleRecord(), sampleDue(), endpoint)).toBe(true);
  });
});
