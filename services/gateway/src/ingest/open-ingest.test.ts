import { expect, test } from '@jest/globals';
import { sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { unavailable } from '../api-error.ts';
import { createWaitReport, logRejected } from './accept-records.ts';
import { createOutOfRangeReport } from './open-ingest.ts';

const place = { clusterId: 'c', topic: 'orders', partition: 1, offset: 2, timestampMs: 3 };

test('The log has the error of a record that was rejected for a fault of Posthorn', () => {
  const logged: object[] = [];
  const log = (fields: object): void => void logged.push(fields);
  const error = new TypeError('undefined is no function');
  const reject = { place, code: 'internal_error', message: 'Failed.', error } as const;
  const { stored } = sampleRecord();
  logRejected({ error: log, warn: log }, reject.code, [{ ...reject, stored }]);
  expect(logged).toEqual([
    expect.objectContaining({ err: error, code: 'internal_error', topic: 'orders', records: 1 }),
  ]);
});

test('Each topic that waits is logged at once, and then once a minute', () => {
  const logged: string[] = [];
  let nowMs = 0;
  const logger = {
    warn: (fields: object) => void logged.push((fields as { topic: string }).topic),
  };
  const report = createWaitReport(logger, () => nowMs);
  const wait = (topic: string): void => {
    report(sampleRecord({}, { topic }), unavailable('mongodb_unavailable'));
  };
  for (const topic of ['a', 'b', 'a']) wait(topic);
  nowMs = 60_000;
  wait('a');
  expect(logged).toEqual(['a', 'b', 'a']);
});

test('A source that has lost its end is an error and is counted, one whose retention has removed records is a warning', () => {
  const logged: string[] = [];
  const counted: string[] = [];
  const logger = { error: () => logged.push('error'), warn: () => logged.push('warn') };
  const report = createOutOfRangeReport(logger as never, {
    endLost: (source) => void counted.push(source),
  });
  const found = { topic: 'orders', partition: 1, wantedOffset: 9, nextOffset: 5 };
  report('orders', { ...found, hasLostItsEnd: true });
  report('orders', { ...found, hasLostItsEnd: false });
  expect([logged, counted]).toEqual([['error', 'warn'], ['orders']]);
});
