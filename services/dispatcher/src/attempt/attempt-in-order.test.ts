import { describe, expect, test } from '@jest/globals';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import {
  type AttemptHarnessOptions,
  createAttemptHarness,
  finding,
  NOW_MS,
  SEALED,
  sendSuccessfully,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import type { Place } from '../order/sequence-in-memory.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';
import { abortedAttempt } from './settled-attempt.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };
const value = encodeMessageCreated(REF, Buffer.from('{}'));

/** Attempts a record that has a place, and returns what happens in which order. */
async function stepsOf(
  options: AttemptHarnessOptions = {},
  turn: Place['turn'] = () => Promise.resolve('begin'),
): Promise<string[]> {
  const steps: string[] = [];
  const note = (step: string): Promise<void> => {
    steps.push(step);
    return Promise.resolve();
  };
  const place: Place = {
    turn,
    succeeded: () => void note('succeeded'),
    leave: () => note('leave'),
    end: () => note('end'),
    fail: () => void note('fail'),
  };
  const { attempt } = createAttemptHarness({
    settling: () => note('recorded'),
    onPublish: () => void note('published'),
    ...options,
    place,
    send: (...args) => {
      steps.push('sent');
      return (options.send ?? sendSuccessfully)(...args);
    },
  });
  const record = sampleRecord({}, { topic: 'created', value, isInherited: true });
  await attempt(record).catch(() => note('rejected'));
  return steps;
}

const failing: SendWebhook = async (...args) => ({
  ...(await sendSuccessfully(...args)),
  outcome: 'http_5xx',
});

function cancelledMeanwhile(): AttemptHarnessOptions {
  let isCancelled = false;
  return {
    send(...args) {
      isCancelled = true;
      return failing(...args);
    },
    cancelledReason: () => (isCancelled ? 'cancelled_by_client' : null),
  };
}

describe('an attempt with an ordering key', () => {
  test('lets the next one begin when its success is read, before it is recorded', async () => {
    expect(await stepsOf()).toEqual(['sent', 'succeeded', 'recorded', 'end']);
  });

  test('stores its sequence before its failure is recorded', async () => {
    expect(await stepsOf({ send: failing })).toEqual(['sent', 'leave', 'recorded', 'end']);
  });

  test.each<[string, AttemptHarnessOptions, string]>([
    ['waits while its webhook is on hold', { isCompanySuspended: () => true }, 'recorded'],
    ['cannot be signed', finding(SEALED), 'recorded'],
    [
      'was recorded before',
      { remaining: { kind: 'publish_failure', attempt: abortedAttempt(sampleDue(), NOW_MS) } },
      'recorded',
    ],
    [
      'is deferred',
      { circuit: () => ({ kind: 'open', deferForMs: 60_000 }) as const },
      'published',
    ],
  ])('stores its sequence first when it %s', async (_what, options, consequence) => {
    expect(await stepsOf(options)).toEqual(['leave', consequence, 'end']);
  });

  test.each<[string, AttemptHarnessOptions, string[]]>([
    ['is cancelled', { cancelledReason: () => 'cancelled_by_client' }, ['recorded', 'end']],
    ['has ended before', { remaining: { kind: 'drop' } }, ['end']],
    ['fails, and is cancelled meanwhile', cancelledMeanwhile(), ['sent', 'recorded', 'end']],
  ])('stores no sequence for one that %s', async (_what, options, expected) => {
    expect(await stepsOf(options)).toEqual(expected);
  });

  test('does nothing more when its delivery waits as a document', async () => {
    expect(await stepsOf({}, () => Promise.resolve('done'))).toEqual([]);
  });

  test.each<[string, AttemptHarnessOptions, string[]]>([
    ['is recorded', { settling: () => Promise.reject(new Error('no')) }, ['sent', 'succeeded']],
    ['is sent', { send: () => Promise.reject(new Error('no')) }, ['sent']],
  ])('keeps its place when it fails before it %s', async (_what, options, expected) => {
    expect(await stepsOf(options)).toEqual([...expected, 'fail', 'rejected']);
  });
});
