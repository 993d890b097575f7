import { beforeEach, describe, expect, test } from '@jest/globals';
import { sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../kafka/record-log.ts';
import type { Confirmed } from './confirm-record.ts';
import { provenOnly, type ProvenOnlyDeps } from './proven-records.ts';

let handled: LogRecord[];
let refused: unknown[];
let isProven: boolean;
let checks: number;
let confirmed: Confirmed | null;

let counted: number;
let confirming: Promise<Confirmed | null> | null;

beforeEach(() => {
  [confirming, counted] = [null, 0];
  [handled, refused, isProven, checks, confirmed] = [[], [], true, 0, null];
});

const unused = () => Promise.reject(new Error('not part of this test'));

/** Returns the options with which the log under it is read. */
async function consumeWith(
  unprovenRecords: ProvenOnlyDeps['unprovenRecords'] = 'confirm',
): Promise<ConsumeOptions> {
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
    unprovenRecords,
    mac: {
      isProven: () => {
        checks += 1;
        return isProven;
      },
    },
    confirm: () => confirming ?? Promise.resolve(confirmed),
    deadLetters: {
      put: (_record, reason, detail) => Promise.resolve(void refused.push([reason, detail])),
    },
    confirmed: { inc: () => (counted += 1) },
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
    const { handle } = await consumeWith();
    await handle(record, isOurs);
    isProven = false;
    await handle(record, isOurs);
    expect([handled, refused, checks, counted]).toEqual([[record, record], [], 1, 0]);
  });

  test('is handled as the store confirms it when it has no right MAC', async () => {
    [isProven, confirmed] = [false, sampleRecord({}, { isInherited: true })];
    const { handle } = await consumeWith();
    await handle(record, isOurs);
    expect([handled, refused, counted]).toEqual([[{ ...record, isInherited: true }], [], 1]);
  });

  test('is a dead letter when the store does not confirm it', async () => {
    isProven = false;
    const { handle } = await consumeWith();
    await handle(record, isOurs);
    expect([handled, counted]).toEqual([[], 0]);
    expect(refused).toMatchObject([['unproven_record', expect.stringContaining('MongoDB')]]);
  });

  test('without a right MAC waits for its time, unless it will be refused', async () => {
    isProven = false;
    const [asking, refusing] = [await consumeWith(), await consumeWith('refuse')];
    expect([asking.delayMs?.(record, 1), refusing.delayMs?.(record, 1)]).toEqual([5_000, 0]);
  });

  test('stops further reading while MongoDB does not confirm large ones', async () => {
    isProven = false;
    let answer: (content: null) => void = () => undefined;
    confirming = new Promise((resolve) => {
      answer = resolve;
    });
    const { handle, mayRead } = await consumeWith();
    record.value = Buffer.alloc(9_000_000);
    const handling = handle(record, isOurs);
    expect(mayRead?.()).toBe(false);
    answer(null);
    await handling;
    expect(mayRead?.()).toBe(true);
  });

  test('without a right MAC is not even looked up where that is refused', async () => {
    [isProven, confirmed] = [false, record];
    const { handle } = await consumeWith('refuse');
    await handle(record, isOurs);
    expect(handled).toEqual([]);
    expect(refused).toMatchObject([['unproven_record', expect.not.stringContaining('MongoDB')]]);
  });
});
