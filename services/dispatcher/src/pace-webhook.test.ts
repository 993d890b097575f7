import { beforeEach, describe, expect, it } from '@jest/globals';
import { decodeRetryDue, DUE_AT_HEADER, type DueAttempt } from '@posthorn/domain/records.ts';
import type { LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { Counter, Registry } from 'prom-client';
import { sampleWebhook } from '../../../test/support/sample-webhook.ts';
import { createPace, type Pace } from './pace-webhook.ts';

const NOW_MS = 1_700_000_000_000;
const ref = {
  ...{ messageId: 'msg_1', webhookId: 'wh_1', companyId: 'comp_1', appId: null, createdAtMs: 1 },
};
const due: DueAttempt = {
  ...{ ...ref, attemptNumber: 1, trigger: 'first', dueAtMs: 1, payload: null },
};
const record: LogRecord = {
  ...{ topic: 'created', partition: 0, offset: 0, key: 'wh_1', value: Buffer.alloc(0) },
  headers: { requestId: 'request-1' },
};

let clockMs: number;
let waits: number[];
let parked: OutgoingRecord[];
let pace: Pace;

beforeEach(() => {
  [clockMs, waits, parked] = [0, [], []];
  pace = createPace({
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
    deferrals: new Counter({ name: 'deferrals', help: 'x', registers: [new Registry()] }),
    wait(ms) {
      waits.push(ms);
      return Promise.resolve();
    },
    monotonicMs: () => clockMs,
    nowMs: () => NOW_MS,
  });
});

const webhookOf = (rateLimitPerSecond: number | null, id = 'wh_1') =>
  sampleWebhook(1, { id, rateLimitPerSecond });

describe('attempts of a webhook with a rate limit', () => {
  it('go at once without a limit, however many there are', async () => {
    for (let i = 0; i < 1_000; i += 1) {
      expect(await pace(record, due, webhookOf(null))).toBe(true);
    }
    expect([waits, parked]).toEqual([[], []]);
  });

  it('are spaced evenly, so that no second holds more than the limit', async () => {
    const turns = await Promise.all(
      Array.from({ length: 9 }, () => pace(record, due, webhookOf(4))),
    );
    expect(turns).toEqual(Array(9).fill(true));
    expect(waits).toEqual([250, 500, 750, 1_000, 1_250, 1_500, 1_750, 2_000]);
    clockMs = 2_250;
    expect(await pace(record, due, webhookOf(4))).toBe(true);
    expect(waits).toHaveLength(8);
  });

  it('do not wait for those of another webhook', async () => {
    await pace(record, due, webhookOf(1));
    await pace(record, due, webhookOf(1, 'wh_2'));
    expect(waits).toEqual([]);
  });

  it('are put off with the shortest delay when they would wait too long, with their number unused', async () => {
    for (let i = 0; i < 3; i += 1) await pace(record, due, webhookOf(1));
    expect(parked).toEqual([]);
    expect(await pace(record, { ...due, attemptNumber: 3 }, webhookOf(1))).toBe(false);
    const [only] = parked;
    expect(only).toMatchObject({
      ...{ topic: 'retry.5s', key: 'wh_1' },
      headers: { requestId: 'request-1', [DUE_AT_HEADER]: String(NOW_MS + 5_000) },
    });
    expect(decodeRetryDue(only?.value ?? Buffer.alloc(0))).toMatchObject({
      ...{ ...ref, attemptNumber: 3, trigger: 'first', dueAtMs: NOW_MS + 5_000 },
    });
  });

  it('wait their turn when they are resends, which are never many at once', async () => {
    for (let i = 0; i < 5; i += 1) {
      expect(await pace(record, { ...due, trigger: 'resend' }, webhookOf(1))).toBe(true);
    }
    expect([waits, parked]).toEqual([[1_000, 2_000, 3_000, 4_000], []]);
  });
});
