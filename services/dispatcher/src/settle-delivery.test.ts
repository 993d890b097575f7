import { expect, test } from '@jest/globals';
import { createKeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { sampleDue } from '../../../test/support/samples/sample-record.ts';
import { collectLogLines } from '../../../test/support/sources/log-lines.ts';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { abortedAttempt } from './attempt/settled-attempt.ts';
import { createDispatcherMetrics } from './metrics.ts';
import { createSettleDelivery, SETTLE_BATCH } from './settle.ts';

test('an outcome is recorded and logged after the stop has begun, once the store is back and its count has room', async () => {
  const due = sampleDue();
  const published: OutgoingRecord[] = [];
  const counts: unknown[] = [];
  let failures = 2;
  let fullFor = 2;
  const { logger, lines } = collectLogLines();
  const settle = createSettleDelivery({
    erasePayloads: () => Promise.resolve(),
    recordAttempts(deliveries) {
      failures -= 1;
      if (failures >= 0) return Promise.reject(new StoreUnavailableError('MongoDB is away'));
      return Promise.resolve(new Set(deliveries.map(({ id }) => id)));
    },
    records: {
      publish: (records) => Promise.resolve(void published.push(...records)),
    },
    failedTopic: 'failed',
    keepTrying: createKeepTrying({ logger, signal: AbortSignal.abort() }),
    keepTryingWhileDraining: keepTrying,
    schedule: [5_000],
    metrics: createDispatcherMetrics(new Registry()),
    counts: {
      add: (...counted) => void counts.push(counted),
      makeRoom() {
        fullFor -= 1;
        if (fullFor < 0) return Promise.resolve();
        expect(failures).toBe(2);
        return Promise.reject(new StoreUnavailableError('no memory for counts'));
      },
    },
    announce: () => undefined,
    logger,
    nowMs: () => 0,
  });
  await settle({
    kind: 'attempted',
    due,
    attempt: abortedAttempt(due, 0),
    appId: 'app_1',
    payloadBytes: 0,
    headers: {},
    cancelReason: null,
    isRecorded: false,
  });
  expect(fullFor).toBe(-1);
  expect(published).toMatchObject([{ topic: 'failed', key: due.webhookId }]);
  const { messageId, deliveryId, webhookId, companyId } = due;
  expect(counts).toMatchObject([
    [
      { companyId, webhookId, appId: 'app_1' },
      { attempt: { outcome: 'aborted' }, payloadBytes: 0 },
    ],
  ]);
  const ids = { messageId, deliveryId, webhookId, companyId };
  expect(lines).toMatchObject([{ ...ids, outcome: 'aborted', msg: 'attempt made' }]);
});

test.each([
  'docs/decisions/0016-the-delivery-is-its-done-mark.md',
  'services/dispatcher/src/attempt/prevent-double-send.ts',
])('%s says what may be sent twice after a crash', (path) => {
  const text = readFileSync(join(import.meta.dirname, '../../..', path), 'utf8');
  const bounds = [...text.matchAll(/in\s+the\s+last\s+(\d+) ms/g)].map(([, ms]) => Number(ms));
  expect(bounds).toEqual([SETTLE_BATCH.lingerMs]);
});
