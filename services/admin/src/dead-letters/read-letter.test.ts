import { describe, expect, test } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { encodeMessageCreated, encodeRetryDue } from '@posthorn/domain/records/records.ts';
import { refOf } from '@posthorn/domain/message/delivery.ts';
import { FAILED, sampleLetter } from '../../../../test/support/samples/sample-letter.ts';
import { createLetterReader, isoTime } from './read-letter.ts';

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

  test.each(['retry.soon', 'deferred.soon', 'dead-letters', '', 'elsewhere'])(
    'is not read if it came from %j, which is not a topic of deliveries',
    (topic) => {
      expect(read(sampleLetter({ topic }))).toMatchObject({ hasKnownSource: false, content: null });
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
