import { beforeEach, describe, expect, it } from '@jest/globals';
import { decodeRetryDue, DUE_AT_HEADER, TURN_AT_HEADER } from '@posthorn/domain/records.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { Counter, Registry } from 'prom-client';
import { sampleDue } from '../../../test/support/sample-record.ts';
import { sampleWebhook } from '../../../test/support/sample-webhook.ts';
import { createPace, type Pace } from './pace-webhook.ts';
import { createPutOff } from './put-off.ts';

const NOW_MS = 1_700_000_000_000;
const ref = {
  ...{ messageId: 'msg_1', webhookId: 'wh_1', companyId: 'comp_1', appId: null, createdAtMs: 1 },
};
const due = sampleDue(ref);

function record(headers: Record<string, string> = {}): LogRecord {
  const place = { topic: 'created', partition: 0, offset: 0, isInherited: false, key: 'wh_1' };
  return { ...place, value: Buffer.alloc(0), headers: { requestId: 'request-1', ...headers } };
}

/** Milliseconds since the beginning of the test; both clocks go by it. */
let clockMs: number;
let waits: number[];
let parked: OutgoingRecord[];
let pace: Pace;

beforeEach(() => {
  [clockMs, waits, parked] = [0, [], []];
  const putOff = createPutOff({
    log: {
      publish(records) {
        parked.push(...records);
        return Promise.resolve();
      },
    },
    parkedByDelayMs: new Map([
      [300_000, 'retry.5m'],
      [5_000, 'retry.5s'],
    ]),
    nowMs: () => NOW_MS + clockMs,
  });
  pace = createPace({
    ...{ putOff, shortestDelayMs: 5_000 },
    deferrals: new Counter({ name: 'deferrals', help: 'x', registers: [new Registry()] }),
    // Never over within a test, so that what waits goes on taking room.
    wait: (ms) => {
      waits.push(ms);
      return new Promise(() => undefined);
    },
    monotonicMs: () => clockMs,
    nowMs: () => NOW_MS + clockMs,
  });
});

const webhookOf = (rateLimitPerSecond: number | null, id = 'wh_1') =>
  sampleWebhook(1, { id, rateLimitPerSecond });

/** Offers so many; those that wait stay open. */
function offer(count: number, rate: number): Promise<boolean>[] {
  return Array.from({ length: count }, () => pace(record(), due, webhookOf(rate)));
}

describe('attempts of a webhook with a rate limit', () => {
  it('go at once without a limit, however many there are', async () => {
    for (let i = 0; i < 1_000; i += 1) {
      expect(await pace(record(), due, webhookOf(null))).toBe(true);
    }
    expect([waits, parked]).toEqual([[], []]);
  });

  it('are spaced evenly, so that no second holds more than the limit', () => {
    void offer(9, 4);
    expect(waits).toEqual([250, 500, 750, 1_000, 1_250, 1_500, 1_750, 2_000]);
  });

  it('go at once again after a pause, and at the new pace after a change of the limit', async () => {
    expect(await offer(1, 4)[0]).toBe(true);
    clockMs = 250;
    expect(await offer(1, 4)[0]).toBe(true);
    void offer(1, 2);
    expect(waits).toEqual([500]);
  });

  it('do not wait for those of another webhook', async () => {
    void offer(3, 1);
    expect(await pace(record(), due, webhookOf(1, 'wh_2'))).toBe(true);
  });

  it.each(['first', 'retry', 'resend'] as const)(
    'are put off when they cannot wait here, number unused: %s',
    async (trigger) => {
      void offer(6, 1);
      const late = { ...due, attemptNumber: 3, trigger };
      expect(await pace(record(), late, webhookOf(1))).toBe(false);
      const [only] = parked;
      const headers = { requestId: 'request-1', [DUE_AT_HEADER]: String(NOW_MS + 5_000) };
      expect(only).toMatchObject({ topic: 'retry.5s', key: 'wh_1', headers });
      expect(decodeRetryDue(only?.value ?? Buffer.alloc(0))).toMatchObject({
        ...{ ...ref, attemptNumber: 3, trigger, dueAtMs: NOW_MS + 5_000 },
      });
    },
  );

  it('book turns behind each other, and rest in the longest delay that ends before the turn', async () => {
    const offered = offer(6 + 400, 1);
    expect(await Promise.all(offered.slice(6))).toEqual(Array(400).fill(false));
    const turns = parked.map(({ headers }) => Number(headers?.[TURN_AT_HEADER]) - NOW_MS);
    expect(turns).toEqual(Array.from({ length: 400 }, (_, n) => 5_000 + (n + 1) * 1_000));
    const topics = parked.map(({ topic }) => topic);
    expect(topics.indexOf('retry.5m')).toBe(294);
  });

  it('keep their turn when they come back too early, and take it when it is near', async () => {
    const turnAt = { [TURN_AT_HEADER]: String(NOW_MS + 60_000) };
    expect(await pace(record(turnAt), due, webhookOf(1))).toBe(false);
    expect(parked[0]?.headers).toMatchObject(turnAt);
    clockMs = 58_000;
    expect(await pace(record(turnAt), due, webhookOf(1))).toBe(true);
  });

  it('take little room in memory, also when the limit is high', async () => {
    const offered = offer(1_000, 10_000);
    const answers = await Promise.all(offered.slice(300));
    expect(answers).toEqual(Array(700).fill(false));
    expect(waits.length).toBe(250);
  });
});
