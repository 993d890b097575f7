import { expect, it } from '@jest/globals';
import {
  decodeRetryDue,
  deferredRecord,
  parkedRecord,
  releasedRecord,
  replayedRecord,
  resentRecord,
  slowLaneRecord,
  sweptRecord,
} from './retry-due.ts';

const REF = {
  messageId: 'msg_01',
  webhookId: 'wh_01',
  companyId: 'comp_01',
  appId: 'app_01',
  createdAtMs: 1_000,
  erasesPayload: true as const,
  expiresAtMs: 9_000,
};
/** The headers of a record on its second way. */
const HEADERS = { requestId: 'req_1', traceparent: '00-1', 'turn-at': '1', 'deferred-since': '2' };
const LASTING = { requestId: 'req_1', traceparent: '00-1' };
const DUE = decodeRetryDue(parkedRecord(REF, { attemptNumber: 3, dueAtMs: 5 }, {}).value);

/** What differs from one kind to the other. */
const KINDS = {
  parked: parkedRecord(REF, { attemptNumber: 2, dueAtMs: 7_000 }, LASTING),
  deferred: deferredRecord(
    { ...DUE, trigger: 'test', isStored: true },
    { dueAtMs: 7_000, reservedAtMs: 6_999.5, sinceMs: 6_000, aheadMs: 10 },
    HEADERS,
  ),
  'deferred, and not by a circuit': deferredRecord(
    DUE,
    { dueAtMs: 7_000, reservedAtMs: 8_000, sinceMs: null, aheadMs: 0 },
    HEADERS,
  ),
  'in the slow lane': slowLaneRecord(DUE, HEADERS),
  'released before its first attempt': releasedRecord({ ...REF, attemptCount: 0 }, 7_000),
  'released before its third attempt': releasedRecord({ ...REF, attemptCount: 2 }, 7_000),
  replayed: replayedRecord(REF, 7_000),
  swept: sweptRecord(REF, { attemptNumber: 1, dueAtMs: 4_000 }, 7_000),
  resent: resentRecord(REF, { attemptNumber: 8, dueAtMs: 7_000 }),
};

it.each(Object.entries(KINDS))(
  'an attempt %s keeps its delivery and the webhook as key',
  (_kind, record) => {
    expect(record.key).toBe(REF.webhookId);
    expect(decodeRetryDue(record.value)).toMatchObject({
      ...REF,
      payload: null,
      isCancelled: false,
    });
  },
);

it('each kind has its number, due time, queue and headers', () => {
  const shown = Object.entries(KINDS).map(([kind, { value, headers }]) => {
    const { attemptNumber, dueAtMs, trigger, isStored = false } = decodeRetryDue(value);
    return [kind, attemptNumber, dueAtMs, trigger, isStored, headers];
  });
  expect(shown).toEqual([
    ['parked', 2, 7_000, 'retry', false, { ...LASTING, 'due-at': '7000' }],
    [
      'deferred',
      3,
      7_000,
      'test',
      true,
      {
        ...LASTING,
        'due-at': '7000',
        'turn-at': '7000',
        'deferred-since': '6000',
        'clock-ahead': '10',
      },
    ],
    [
      'deferred, and not by a circuit',
      3,
      7_000,
      'retry',
      false,
      { ...LASTING, 'due-at': '7000', 'turn-at': '8000', 'clock-ahead': '0' },
    ],
    ['in the slow lane', 3, 5, 'retry', false, HEADERS],
    ['released before its first attempt', 1, 7_000, 'first', true, { 'turn-at': '7000' }],
    ['released before its third attempt', 3, 7_000, 'retry', true, { 'turn-at': '7000' }],
    ['replayed', 1, 7_000, 'retry', true, { 'turn-at': '7000' }],
    ['swept', 1, 4_000, 'retry', true, { 'turn-at': '7000' }],
    ['resent', 8, 7_000, 'resend', false, {}],
  ]);
});
