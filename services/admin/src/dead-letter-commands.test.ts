import { describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import {
  FAILED,
  sampleLetter,
  type SampleLetter,
} from '../../../test/support/samples/sample-letter.ts';
import {
  createNewest,
  describeLetter,
  summarize,
  summaryToJson,
  summaryToText,
} from './dead-letter-commands.ts';
import { createLetterReader } from './letters.ts';

const read = createLetterReader('p.');
const shown = (of: SampleLetter = {}) => describeLetter(read(sampleLetter(of)));
const begins = (value: Buffer) => (shown({ value }) as { begins?: object }).begins;

const { messageId, webhookId } = FAILED;
const deliveryId = deliveryIdOf(messageId, webhookId);

describe('a dead letter', () => {
  test('is one line of the list, with its ids and without a payload', () => {
    const value = encodeMessageCreated(refOf(FAILED), Buffer.from('"hush"'));
    const summary = summarize(read(sampleLetter({ topic: 'message-created', value })));
    expect(summaryToJson(summary)).toEqual({
      id: '1:7',
      at: '1970-01-01T00:00:05.000Z',
      reason: 'schedule_exhausted',
      detail: 'why',
      sourceTopic: 'p.message-created',
      sourcePlace: '3:42',
      messageId,
      webhookId,
      deliveryId,
    });
    expect(summaryToText(summary)).toBe(
      `1:7  1970-01-01T00:00:05.000Z  schedule_exhausted  p.message-created 3:42  ${messageId}  ${webhookId}  why`,
    );
    expect(JSON.stringify(summary)).not.toContain('hush');
  });

  test('prints no control characters of a foreign record', () => {
    const summary = summarize(read(sampleLetter()));
    const text = summaryToText({ ...summary, sourceTopic: 'a\nb', detail: 'red \u001b[31m' });
    expect(text).toContain('a\\u000ab 3:42');
    expect(text).toContain('red \\u001b[31m');
  });

  test('is shown with its source, its headers and the fields of its record', () => {
    expect(shown()).toEqual({
      id: '1:7',
      at: '1970-01-01T00:00:05.000Z',
      reason: 'schedule_exhausted',
      detail: 'why',
      source: { topic: 'p.delivery-failed', place: '3:42' },
      key: webhookId,
      headers: { requestId: 'req_1' },
      bytes: expect.any(Number),
      record: {
        deliveryId,
        messageId,
        webhookId,
        companyId: 'comp_a',
        appId: null,
        createdAt: '1970-01-01T00:00:01.000Z',
        endedAt: '1970-01-01T00:00:02.000Z',
        attemptNumber: 7,
        outcome: 'http_5xx',
        statusCode: 503,
      },
    });
  });

  test.each([
    ['text', Buffer.from('{"n": 1}\n'), { text: '{"n": 1}\n' }],
    ['nothing', Buffer.alloc(0), { text: '' }],
    ['bytes that are not text', Buffer.from([0xff, 0xfe]), { hex: 'fffe' }],
    ['control characters', Buffer.from('\u001b[31m'), { hex: '1b5b33316d' }],
    ['a long text', Buffer.from('x'.repeat(600)), { text: 'x'.repeat(512) }],
    ['a text cut in a character', Buffer.from(`${'x'.repeat(511)}é`), { text: 'x'.repeat(511) }],
  ])('shows the first bytes of an unreadable record: %s', (_what, value, expected) => {
    expect(begins(value)).toEqual(expected);
  });
});

test('the newest entries are kept in any order of arrival, and all are counted', () => {
  const newest = createNewest<{ atMs: number }>(3);
  for (const atMs of [5, 1, 9, 2, 8, 3, 7, 4, 6]) newest.add({ atMs });
  expect(newest.entries().map(({ atMs }) => atMs)).toEqual([9, 8, 7]);
  expect(newest.added()).toBe(9);
});

test('fewer entries than the limit are all kept', () => {
  const newest = createNewest<{ atMs: number }>(3);
  newest.add({ atMs: 1 });
  newest.add({ atMs: 2 });
  expect(newest.entries()).toEqual([{ atMs: 2 }, { atMs: 1 }]);
});
