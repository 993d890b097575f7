import { describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeDisabling, encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import {
  FAILED,
  sampleLetter,
  type SampleLetter,
} from '../../../test/support/samples/sample-letter.ts';
import {
  createLetterReader,
  isoTime,
  matchesFilter,
  parseFilter,
  parseLimit,
  parsePlace,
  parseSelection,
  placeText,
  topicsWith,
} from './letters.ts';

describe('read letter', () => {
  const read = createLetterReader('p.');
  const deliveryId = deliveryIdOf(FAILED.messageId, FAILED.webhookId);
  const due = encodeRetryDue({ ...refOf(FAILED), attemptNumber: 3, dueAtMs: 9 });

  describe('the record in a dead letter', () => {
    test('is a failed attempt if it came from delivery-failed', () => {
      expect(read(sampleLetter()).content).toMatchObject({
        deliveryId,
        nextAttemptNumber: 8,
        companyId: 'comp_a',
        details: { attemptNumber: 7, outcome: 'http_5xx', statusCode: 503 },
      });
    });

    test('may be of an attempt that disables its webhook, which nothing follows', () => {
      const value = encodeDisabling({ ...FAILED, reason: 'gone', changedAtMs: 1 });
      expect(read(sampleLetter({ value })).content).toMatchObject({
        deliveryId,
        nextAttemptNumber: null,
        details: { attemptNumber: 7, disables: 'gone' },
      });
    });

    test.each(['retry-due', 'slow-lane', 'retry.5s', 'retry.10h', 'deferred.5s', 'deferred.12h'])(
      'is a due attempt if it came from %s',
      (topic) => {
        expect(read(sampleLetter({ topic, value: due }))).toMatchObject({
          hasKnownSource: true,
          content: { deliveryId, nextAttemptNumber: 3, details: { trigger: 'retry' } },
        });
      },
    );

    test('is a message without its payload if it came from message-created', () => {
      const value = encodeMessageCreated(refOf(FAILED), Buffer.from('"hush"'));
      const { content } = read(sampleLetter({ topic: 'message-created', value }));
      expect(content).toMatchObject({ nextAttemptNumber: 1, details: { payloadBytes: 6 } });
      expect(JSON.stringify(content)).not.toContain('hush');
    });

    test('has an id that says whether it is of an exhausted delivery', () => {
      expect(read(sampleLetter()).id).toBe('1:7');
      expect(read({ ...sampleLetter(), topic: 'p.exhausted-deliveries' }).id).toBe('exhausted:1:7');
    });

    test.each(['retry.soon', 'deferred.soon', 'dead-letters', '', 'elsewhere'])(
      'is not read if it came from %j, which is not a topic of deliveries',
      (topic) => {
        expect(read(sampleLetter({ topic }))).toMatchObject({
          hasKnownSource: false,
          content: null,
        });
      },
    );

    test('may be unreadable', () => {
      const value = Buffer.from('not JSON');
      expect(read(sampleLetter({ value }))).toMatchObject({ hasKnownSource: true, content: null });
    });

    test('may have a time that no date can hold', () => {
      expect([isoTime(0), isoTime(1e300)]).toEqual(['1970-01-01T00:00:00.000Z', '1e+300']);
    });
  });
});

describe('letter filter', () => {
  const read = createLetterReader('p.');
  const OTHER = '3'.repeat(26);

  const isMatch = (options: object, of: SampleLetter = {}): boolean =>
    matchesFilter(read(sampleLetter(of)), parseFilter(options), 'p.');

  describe('a filter of dead letters', () => {
    test('matches every letter when it is empty', () => {
      expect(isMatch({})).toBe(true);
    });

    test.each([
      [{ reason: 'schedule_exhausted' }, { reason: 'message_missing' }],
      [{ sourceTopic: 'delivery-failed' }, { sourceTopic: 'retry-due' }],
      [{ sourceTopic: 'p.delivery-failed' }, { sourceTopic: 'p.retry-due' }],
      [{ webhook: FAILED.webhookId }, { webhook: `wh_${OTHER}` }],
      [{ message: FAILED.messageId }, { message: `msg_${OTHER}` }],
      [{ since: '1970-01-01T00:00:05Z' }, { since: '1970-01-01T00:00:05.001Z' }],
      [{ until: '1970-01-01T01:00:05+01:00' }, { until: '1970-01-01T00:00:04.999Z' }],
    ])('%j matches and %j does not', (matching, other) => {
      expect([isMatch(matching), isMatch(other)]).toEqual([true, false]);
    });

    test('finds the webhook of an unreadable record by the key of the record', () => {
      const value = Buffer.from('no');
      expect(isMatch({ webhook: FAILED.webhookId }, { value })).toBe(true);
      expect(isMatch({ webhook: FAILED.webhookId }, { value, key: 'other' })).toBe(false);
      expect(isMatch({ message: FAILED.messageId }, { value })).toBe(false);
    });

    test('is refused with every invalid option', () => {
      expect(() => parseFilter({ reason: 'bored', since: '2026-08-01', sourceTopic: 'x' })).toThrow(
        /^--reason must be one of .*\n--since must be an ISO time with a zone/,
      );
      expect(() => parseFilter({ webhook: 'msg_1' })).toThrow(
        '--webhook must be an id such as wh_…',
      );
    });
  });

  describe('the selection of a replay', () => {
    test('is one letter, those that match, or all', () => {
      const place = { isExhausted: false, partition: 3, offset: 42 };
      expect(parseSelection('3:42', {})).toMatchObject({ place });
      const exhausted = { ...place, isExhausted: true };
      expect(parseSelection('exhausted:3:42', {})).toMatchObject({ place: exhausted });
      expect([place, exhausted].map(placeText)).toEqual(['3:42', 'exhausted:3:42']);
      const filtered = { all: false, reason: 'message_missing' };
      const { reason } = filtered;
      expect(parseSelection(undefined, filtered)).toEqual({ place: null, filter: { reason } });
      expect(parseSelection(undefined, { all: true })).toEqual({ place: null, filter: {} });
    });

    test('must be given in exactly one way', () => {
      expect(() => parseSelection(undefined, {})).toThrow('--all for every dead letter');
      const filtered = { all: false, reason: 'message_missing' };
      expect(() => parseSelection('3:42', filtered)).toThrow('not more than one of them');
      expect(() => parseSelection(undefined, { ...filtered, all: true })).toThrow('not more than');
    });

    test.each(['', '3', '3:', 'a:1', '3:1:2', '-1:0', 'exhausted:3', 'dead:3:1'])(
      'must not be the id %j',
      (id) => {
        expect(() => parsePlace(id)).toThrow('id must be partition:offset');
      },
    );
  });

  test('are looked for in the topic of their reason', () => {
    const topics = { deadLetters: 'dead', exhaustedDeliveries: 'exhausted' };
    const found = (reason?: string) => topicsWith(reason, topics);
    expect(found()).toEqual(['dead', 'exhausted']);
    expect([found('schedule_exhausted'), found('gone')]).toEqual([['exhausted'], ['exhausted']]);
    expect(found('unreadable_record')).toEqual(['dead']);
  });

  test.each(['0', '10001', 'x', '1.5'])('a list must not have %s entries', (limit) => {
    expect(parseLimit('10000')).toBe(10_000);
    expect(() => parseLimit(limit)).toThrow('--limit must be');
  });
});
