import { describe, expect, test } from '@jest/globals';
import { createVault, SealedValueError } from '@posthorn/platform/security/vault.ts';
import fc from 'fast-check';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { openedWebhook, randomKey } from '../../../../test/support/samples/sample-webhook.ts';
import { describeAccepted, shownOf } from '../routes/message-responses.ts';
import { createSealedResponses } from './build-message.ts';

const vault = createVault([randomKey('k1')]);
const responses = createSealedResponses(vault);
const webhook = openedWebhook(1);
const made = sampleMessage('msg_01hf2m6q7xabcdefghjkmnpqrs', { targets: [webhook.id] });

async function withResponse(message = made) {
  const shown = shownOf(message, webhook);
  const response = await describeAccepted(message, shown);
  const idempotency = { key: 'k', bodyHash: 'h', answer: responses.seal(message, shown) };
  return { response, stored: { ...message, idempotency } };
}

describe('a stored response', () => {
  test('is restored byte for byte, whatever the payload is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (payload) => {
        const { response, stored } = await withResponse({ ...made, payload });
        expect(JSON.stringify(await responses.open(stored))).toBe(JSON.stringify(response));
      }),
    );
  });

  test('is unreadable in the store and does not repeat the payload', async () => {
    const payload = JSON.stringify('x'.repeat(10_000));
    const { stored } = await withResponse({ ...made, payload });
    // Its text is in base64, in which three letters stand together by chance.
    expect(stored.idempotency.answer).not.toContain(webhook.id);
    expect(stored.idempotency.answer).not.toContain('hush');
    expect(stored.idempotency.answer.length).toBeLessThan(5_000);
  });

  test('holds what the webhook showed, whatever the number of targets', async () => {
    const targets = Array.from({ length: 10_000 }, (_, n) => openedWebhook(n).id);
    const { response, stored } = await withResponse({ ...made, targets });
    expect(stored.idempotency.answer.length).toBeLessThan(1_000);
    expect(await responses.open(stored)).toEqual(response);
  });

  test('of an earlier version, which was kept whole, is returned as it was', async () => {
    const { response, stored } = await withResponse();
    const binding = { companyId: made.companyId, ownerId: made.id, field: 'answer' };
    const answer = vault.seal(JSON.stringify({ ...response, payload: '' }), binding);
    const whole = { ...stored, idempotency: { ...stored.idempotency, answer } };
    expect(JSON.stringify(await responses.open(whole))).toBe(JSON.stringify(response));
  });

  test('opens for its own message only', async () => {
    const { stored } = await withResponse();
    const others = [{ id: 'msg_01hf2m6q7xabcdefghjkmnpqrt' }, { companyId: 'comp_b' }];
    for (const other of others) {
      await expect(responses.open({ ...stored, ...other })).rejects.toThrow(SealedValueError);
    }
  });

  test('that is missing is an error, not an empty response', async () => {
    await expect(responses.open(made)).rejects.toThrow(SealedValueError);
  });
});
