import { describe, expect, test } from '@jest/globals';
import { createVault, SealedValueError } from '@posthorn/platform/security/vault.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { openedWebhook, randomKey } from '../../../../test/support/samples/sample-webhook.ts';
import { headersOf } from '../history/sent-headers.ts';
import { createSealedResponses } from './build-message.ts';

const vault = createVault([randomKey('k1')]);
const responses = createSealedResponses(vault);
const webhook = openedWebhook(1);
const made = sampleMessage('msg_01hf2m6q7xabcdefghjkmnpqrs', { targets: [webhook.id] });

function withResponse(message = made) {
  const { signature, headers } = headersOf(message, webhook);
  const shown = { signature, headers };
  const idempotency = { key: 'k', bodyHash: 'h', answer: responses.seal(message, shown) };
  return { shown, stored: { ...message, idempotency } };
}

describe('a stored response [security]', () => {
  test('is opened as it was sealed, and does not repeat the payload', () => {
    const payload = JSON.stringify('x'.repeat(10_000));
    const { shown, stored } = withResponse({ ...made, payload });
    expect(responses.open(stored)).toEqual(shown);
    // Its text is in base64, in which three letters stand together by chance.
    expect(stored.idempotency.answer).not.toContain(webhook.id);
    expect(stored.idempotency.answer).not.toContain('hush');
    expect(stored.idempotency.answer.length).toBeLessThan(5_000);
  });

  test('is short, whatever the number of targets', () => {
    const targets = Array.from({ length: 10_000 }, (_, n) => openedWebhook(n).id);
    const { stored } = withResponse({ ...made, targets });
    expect(stored.idempotency.answer.length).toBeLessThan(1_000);
  });

  test('opens for its own message only', () => {
    const { stored } = withResponse();
    const others = [{ id: 'msg_01hf2m6q7xabcdefghjkmnpqrt' }, { companyId: 'comp_b' }];
    for (const other of others) {
      expect(() => responses.open({ ...stored, ...other })).toThrow(SealedValueError);
    }
  });

  test('that is missing is an error, not an empty response', () => {
    expect(() => responses.open(made)).toThrow(SealedValueError);
  });
});
