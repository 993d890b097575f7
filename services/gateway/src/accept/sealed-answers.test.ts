import { describe, expect, test } from '@jest/globals';
import { createVault, SealedValueError } from '@posthorn/platform/vault/vault.ts';
import fc from 'fast-check';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { randomKey, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { describeAccepted } from '../http/answers/message.ts';
import { createKeptAnswers } from './sealed-answers.ts';

const answers = createKeptAnswers(createVault([randomKey('k1')]));
const webhook = sampleWebhook(1);
const made = sampleMessage('msg_01hf2m6q7xabcdefghjkmnpqrs', { targets: [webhook.id] });

function withAnswer(message = made) {
  const answer = describeAccepted(message, [webhook]);
  const idempotency = { key: 'k', bodyHash: 'h', answer: answers.seal(message, answer) };
  return { answer, kept: { ...message, idempotency } };
}

describe('a kept answer', () => {
  test('comes back byte for byte, whatever the payload is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (payload) => {
        const { answer, kept } = withAnswer({ ...made, payload });
        expect(JSON.stringify(answers.open(kept))).toBe(JSON.stringify(answer));
      }),
    );
  });

  test('shows nothing to who reads the store, and holds the payload no second time', () => {
    const payload = JSON.stringify('x'.repeat(10_000));
    const { kept } = withAnswer({ ...made, payload });
    expect(kept.idempotency.answer).not.toMatch(/hush|wh_/);
    expect(kept.idempotency.answer.length).toBeLessThan(5_000);
  });

  test('opens in its own message only', () => {
    const { kept } = withAnswer();
    expect(() => answers.open({ ...kept, id: 'msg_01hf2m6q7xabcdefghjkmnpqrt' })).toThrow(
      SealedValueError,
    );
    expect(() => answers.open({ ...kept, companyId: 'comp_b' })).toThrow(SealedValueError);
  });

  test('that is not there is an error, not an empty answer', () => {
    expect(() => answers.open(made)).toThrow(SealedValueError);
  });
});
