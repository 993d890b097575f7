import { beforeEach, describe, expect, test } from '@jest/globals';
import { sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../kafka/record-log.ts';
import { provenOnly } from './proven-records.ts';

let handled: LogRecord[];
let refused: unknown[];
let isProven: boolean;
let checks: number;

beforeEach(() => {
  [handled, refused, isProven, checks] = [[], [], true, 0];
});

const unused = () => Promise.reject(new Error('not part of this test'));

/** Returns the options with which the log under it is read. */
async function consume(): Promise<ConsumeOptions> {
  const given: ConsumeOptions[] = [];
  const log: RecordLog = {
    publish: unused,
    close: unused,
    isConnected: () => true,
    consume(options) {
      given.push(options);
      return Promise.resolve({ stop: unused, isRunning: () => true, isAlive: () => true });
    },
  };
  const proven = provenOnly(log, {
    prefix: '',
    mac: {
      isProven: () => {
        checks += 1;
        return isProven;
      },
    },
    deadLetters: {
      put: (_record, reason, detail) => Promise.resolve(void refused.push([reason, detail])),
    },
  });
  await proven.consume({
    groupId: 'group',
    topics: ['due'],
    inFlightLimits: { pauseAt: 1, resumeAt: 1 },
    delayMs: () => 5_000,
    handle: (given) => Promise.resolve(void handled.push(given)),
  });
  const [options] = given;
  if (!options) throw new Error('nothing was consumed');
  return options;
}

let record: LogRecord;
const isOurs = () => true;

beforeEach(() => {
  record = sampleRecord();
});

describe('a record that is read', () => {
  test('is handled when it is proven, and not checked again after an outage', async () => {
    const { handle } = await consume();
    await handle(record, isOurs);
    isProven = false;
    await handle(record, isOurs);
    expect([handled, refused, checks]).toEqual([[record, record], [], 1]);
  });

  test('is a dead letter when it has no right MAC', async () => {
    isProven = false;
    const { handle } = await consume();
    await handle(record, isOurs);
    expect(handled).toEqual([]);
    expect(refused).toMatchObject([['unproven_record', expect.stringContaining('MAC')]]);
  });

  test('waits for its time when it is proven, and not when it will be refused', async () => {
    const { delayMs } = await consume();
    expect(delayMs?.(record, 1)).toBe(5_000);
    isProven = false;
    expect(delayMs?.(sampleRecord(), 1)).toBe(0);
  });
});
