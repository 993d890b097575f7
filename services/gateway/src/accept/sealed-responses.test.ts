import { describe, expect, test } from '@jest/globals';
import { createVault, SealedValueError } from '@posthorn/platform/vault/vault.ts';
import fc from 'fast-check';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { randomKey, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { describeAccepted } from '../http/responses/message.ts';
import { createSealedResponses } from './sealed-responses.ts';

const responses = createSealedResponses(createVault([randomKey('k1')]));
const webhook = sampleWebhook(1);
const made = sampleMessage('msg_01hf2m6q7xabcdefghjkmnpqrs', { targets: [webhook.id] });

function withResponse(message = made) {
  const response = describeAccepted(message, [webhook]);
  const idempotency = { key: 'k', bodyHash: 'h', answer: responses.seal(message, response) };
  return { response, stored: { ...message, idempotency } };
}

describe('a stored response', () => {
  test('is restored byte for byte, whatever the payload is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (payload) => {
        const { response, stored } = withResponse({ ...made, payload });
        expect(JSON.stringify(responses.open(stored))).toBe(JSON.stringify(response));
      }),
    );
  });

  test('is unreadable in the store and does not repeat the payload', () => {
    const payload = JSON.stringify('x'.repeat(10_000));
    const { stored } = withResponse({ ...made, payload });
    expect(stored.idempotency.answer).not.toMatch(/hush|wh_/);
    expect(stored.idempotency.answer.length).toBeLessThan(5_000);
  });

  test('opens for its own message only', () => {
    const { stored } = withResponse();
    expect(() => responses.open({ ...stored, id: 'msg_01hf2m6q7xabcdefghjkmnpqrt' })).toThrow(
      SealedValueError,
    );
    expect(() => responses.open({ ...stored, companyId: 'comp_b' })).toThrow(SealedValueError);
  });

  test('that is missing is an error, not an empty response', () => {
    expect(() => responses.open(made)).toThrow(SealedValueError);
  });
});
