import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

/** As a path of Slack: its last part is the secret. */
const PATH = '/services/T00/B00/secret-of-the-path';
const PUBLIC_URL = 'https://hooks.example.com/posthorn';

let posthorn: Posthorn;
let chat: Receiver;
let endpoint: Receiver;

beforeAll(async () => {
  [chat, endpoint] = [await startReceiver(), await startReceiver()];
  endpoint.answerWith(failing(99));
  // Without OPERATOR_WEBHOOK_SECRET: chats check no signature.
  posthorn = await startPosthorn(
    { RETRY_DELAYS: '50ms' },
    { apart: { retry: settingsOf('slack') } },
  );
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
  await Promise.all([chat.close(), endpoint.close()]);
});

const settingsOf = (format: 'slack' | 'teams'): Record<string, string> => ({
  OPERATOR_WEBHOOK_URL: `${chat.url}${PATH}`,
  OPERATOR_WEBHOOK_FORMAT: format,
  PUBLIC_URL,
});

/** Fails a delivery for good, and returns its webhook and the request about it that the chat gets. */
async function requestOfFailure() {
  const { webhookId } = await posthorn.api.createTarget(endpoint.url);
  await posthorn.api.send({ webhookId }, { n: 1 });
  const request = await eventually('the request to the chat', () =>
    chat.received.find(({ body }) => {
      const text = String(body);
      return text.includes(webhookId) && text.includes('delivery.exhausted');
    }),
  );
  return { webhookId, request, body: JSON.parse(String(request.body)) as unknown };
}

describe('A chat of the operator', () => {
  it('gets a text as Slack takes it, without a signature', async () => {
    const { webhookId, request, body } = await requestOfFailure();
    expect(body).toEqual({ text: expect.any(String) });
    const lines = (body as { text: string }).text.split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'The last attempt of a delivery failed',
        'Type: delivery.exhausted',
        `Company: ${posthorn.companyId}`,
        `Webhook: ${webhookId}`,
        `<${PUBLIC_URL}/dashboard/webhooks/${webhookId}|Open in the dashboard>`,
      ]),
    );
    expect(request.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(Object.keys(request.headers).filter((name) => name.startsWith('webhook-'))).toEqual([]);
  });

  it('gets a message with an Adaptive Card as Teams takes it', async () => {
    await posthorn.retry.stop();
    await posthorn.start('retry', settingsOf('teams'));
    const { webhookId, body } = await requestOfFailure();
    expect(body).toMatchObject({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          content: {
            type: 'AdaptiveCard',
            version: '1.4',
            actions: [
              { type: 'Action.OpenUrl', url: `${PUBLIC_URL}/dashboard/webhooks/${webhookId}` },
            ],
          },
        },
      ],
    });
  });
});
