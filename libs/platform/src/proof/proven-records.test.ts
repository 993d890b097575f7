import { beforeEach, describe, expect, test } from '@jest/globals';
import { sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../kafka/record-log.ts';
import type { Proof } from '../kafka/record-mac.ts';
import { provenOnly, type ProvenOnlyDeps } from './proven-records.ts';

let handled: LogRecord[];
let refused: unknown[];
let proof: Proof;
let checks: number;
let confirmed: LogRecord | null;

beforeEach(() => {
  [handled, refused, proof, checks, confirmed] = [[], [], 'proven', 0, null];
});

const unused = () => Promise.reject(new Error('not part of this test'));

/** Returns the options with which the log under it is read. */
async function consumeWith(
  unsignedRecords: ProvenOnlyDeps['unsignedRecords'] = 'confirm',
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
    unsignedRecords,
    mac: {
      proofOf: () => {
        checks += 1;
        return proof;
      },
    },
    confirm: () => Promise.resolve(confirmed),
    deadLetters: {
      put: (_record, reason, detail) => Promise.resolve(void refused.push([reason, detail])),
    },
  });
  await proven.consume({
    groupId: 'group',
    topics: ['due'],
    inFlightLimits: { pauseAt: 1, resumeAt: 1 },
    delayMs: () => 5_000,
    handle: (record) => Promise.resolve(void handled.push(record)),
  });
  const [options] = given;
  if (!options) throw new Error('nothing was consumed');
  return options;
}

const record = sampleRecord();

describe('a record that is read', () => {
  test('is handled when it is proven, and checked once', async () => {
    const { handle, delayMs } = await consumeWith();
    expect([delayMs?.(record, 1), delayMs?.(record, 1)]).toEqual([5_000, 5_000]);
    await handle(record);
    expect([handled, refused, checks]).toEqual([[record], [], 1]);
  });

  test('is a dead letter at once when it is forged', async () => {
    proof = 'forged';
    const { handle, delayMs } = await consumeWith();
    expect(delayMs?.(record, 1)).toBe(0);
    await handle(record);
    expect([handled, refused]).toEqual([[], [['unproven_record', 'its MAC is wrong']]]);
  });

  test('is handled as the store confirms it when it has no MAC', async () => {
    [proof, confirmed] = ['unsigned', sampleRecord({}, { isInherited: true })];
    const { handle } = await consumeWith();
    await handle(record);
    expect([handled, refused]).toEqual([[confirmed], []]);
  });

  test('is a dead letter when the store does not confirm it', async () => {
    proof = 'unsigned';
    const { handle } = await consumeWith();
    await handle(record);
    expect(handled).toEqual([]);
    expect(refused).toMatchObject([['unproven_record', expect.stringContaining('MongoDB')]]);
  });

  test('without a MAC is not even looked up where that is refused', async () => {
    [proof, confirmed] = ['unsigned', record];
    const { handle } = await consumeWith('refuse');
    await handle(record);
    expect(handled).toEqual([]);
    expect(refused).toMatchObject([['unproven_record', expect.stringContaining('no MAC')]]);
  });
});
