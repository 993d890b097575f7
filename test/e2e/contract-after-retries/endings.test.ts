import { describe, expect, it } from '@jest/globals';
import { dataOf, expectInvalid } from '../../support/api/expect-answers.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import type { ShownDelivery, ShownWebhook } from '../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import type { Answer } from '../../support/receivers/receiver.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import { eventually } from '../../support/time/eventually.ts';

/** See docs/contract.md C6.20 to C6.23 and C10.11. The schedule has two attempts. */
describe('Deliveries that end before their schedule', () => {
  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();

  const answering =
    (status: number, control?: string): Answer =>
    (response) =>
      response
        .writeHead(status, control === undefined ? {} : { 'webhook-delivery': control })
        .end();
  const webhookWith = (fields: object) => make.webhook({ url: receiver.url, ...fields });
  const get = async ({ id }: ShownWebhook): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.get(`/webhooks/${id}`));
  const put = async ({ id }: ShownWebhook, changes: object): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.put(`/webhooks/${id}`, changes));
  const send = async ({ id: webhookId }: ShownWebhook): Promise<string> =>
    String((await make.message({ webhookId })).deliveries[0]?.id);
  /** Sends one message and returns its delivery once it has this status. */
  const ended = async (status: string, webhook: ShownWebhook): Promise<ShownDelivery> =>
    make.deliveryOnce(status, await send(webhook));

  it.each<[string, object, Answer, string | null]>([
    ['maxAttempts', { maxAttempts: 1 }, answering(500), null],
    ['finalStatusCodes', { finalStatusCodes: [400, 422] }, answering(422), 'not_retryable'],
    ['a header', { obeyControlHeaders: true }, answering(503, 'abort-message'), 'aborted'],
    ['status 410', { onGone: 'disable' }, answering(410), 'gone'],
  ])('are exhausted with the reason: %s', async (_by, fields, answer, reason) => {
    receiver.answerWith(answer);
    const webhook = await webhookWith(fields);
    expect(await get(webhook)).toMatchObject(fields);
    const delivery = await ended('exhausted', webhook);
    expect(delivery).toMatchObject({ reason, attemptCount: 1, nextAttemptAt: null });
    expect(receiver.of(delivery.messageId)).toHaveLength(1);
    const [letter] = await readTopic(posthorn.env, 'exhausted-deliveries', ({ value }) =>
      value.includes(delivery.messageId),
    );
    expect(letter?.headers).toMatchObject({ reason: reason ?? 'schedule_exhausted' });
  });

  it.each<[string, Answer]>([
    ['410', answering(410)],
    ['422', answering(422)],
    ['webhook-delivery: disable', answering(500, 'disable')],
    ['webhook-delivery: abort-message', answering(500, 'abort-message')],
  ])(
    'are others for webhooks with the defaults, which try again after %s',
    async (_what, answer) => {
      receiver.answerWith(answer);
      const webhook = await webhookWith({});
      expect(await ended('exhausted', webhook)).toMatchObject({ reason: null, attemptCount: 2 });
      expect(await get(webhook)).toMatchObject({ disabled: false, disabledReason: null });
    },
  );

  it('cause no further request when the endpoint is gone', async () => {
    receiver.answerWith(answering(410));
    // One attempt is under way at a time, and the others wait.
    const webhook = await webhookWith({ onGone: 'disable', rateLimitPerSecond: 1 });
    const ids = await Promise.all(Array.from({ length: 5 }, () => send(webhook)));
    const deliveries = await eventually('the ends', async () => {
      const all = await Promise.all(ids.map((id) => make.delivery(id)));
      return all.every(({ status }) => status !== 'pending') ? all : null;
    });
    const ends = deliveries.map(({ status, reason }) => `${status} ${String(reason)}`).sort();
    const cancelled = Array<string>(4).fill('cancelled webhook_disabled');
    expect(ends).toEqual([...cancelled, 'exhausted gone']);
    const requests = deliveries.flatMap(({ messageId }) => receiver.of(messageId));
    expect(requests).toHaveLength(1);
    expect(await get(webhook)).toMatchObject({ disabled: true, disabledReason: 'gone' });
    const [event] = await readAuditEvents(posthorn.api, { actor: 'system', targetId: webhook.id });
    expect(event).toMatchObject({
      action: 'webhook.updated',
      changes: [
        { field: 'disabled', before: false, after: true },
        { field: 'disabledReason', before: null, after: 'gone' },
      ],
    });
  });

  it('are those after a response that disables the webhook, also with a success, until a client enables it', async () => {
    receiver.answerWith(answering(200, 'disable'));
    const webhook = await webhookWith({ obeyControlHeaders: true });
    expect(await ended('delivered', webhook)).toMatchObject({ reason: null, attemptCount: 1 });
    const disabled = { disabled: true, disabledReason: 'control_header' };
    await eventually('the end of the webhook', async () => (await get(webhook)).disabled);
    expect(await get(webhook)).toMatchObject(disabled);
    const cancelled = { reason: 'webhook_disabled', attemptCount: 0 };
    expect(await ended('cancelled', webhook)).toMatchObject(cancelled);
    receiver.answerWith(answering(200));
    const enabled = { disabled: false, disabledReason: null };
    expect(await put(webhook, { disabled: false })).toMatchObject(enabled);
    await ended('delivered', webhook);
  });

  it('are cancelled when their own failure disables the webhook without ending them', async () => {
    receiver.answerWith(answering(500, 'disable'));
    const webhook = await webhookWith({ obeyControlHeaders: true });
    const delivery = await ended('cancelled', webhook);
    expect(delivery).toMatchObject({ reason: 'webhook_disabled', attemptCount: 1 });
  });

  it('can be resent, and have no reason once that succeeded', async () => {
    receiver.answerWith(answering(422));
    const webhook = await webhookWith({ finalStatusCodes: [422] });
    const { id } = await ended('exhausted', webhook);
    receiver.answerWith(answering(200));
    dataOf(await posthorn.api.post(`/api/v1/deliveries/${id}/resend`, undefined));
    expect(await make.deliveryOnce('delivered', id)).toMatchObject({ reason: null });
  });

  it.each<[object, string]>([
    [{ maxAttempts: 0 }, 'maxAttempts'],
    [{ maxAttempts: 8 }, 'maxAttempts'],
    [{ finalStatusCodes: [] }, 'finalStatusCodes'],
    [{ finalStatusCodes: [399] }, 'finalStatusCodes.0'],
    [{ finalStatusCodes: [400, 600] }, 'finalStatusCodes.1'],
    [{ finalStatusCodes: [408] }, 'finalStatusCodes.0'],
    [{ finalStatusCodes: [425] }, 'finalStatusCodes.0'],
    [{ finalStatusCodes: [429] }, 'finalStatusCodes.0'],
    [{ finalStatusCodes: [503] }, 'finalStatusCodes.0'],
    [{ finalStatusCodes: [410, 410] }, 'finalStatusCodes'],
    [{ finalStatusCodes: Array.from({ length: 21 }, (_, n) => 430 + n) }, 'finalStatusCodes'],
    [{ onGone: 'delete' }, 'onGone'],
    [{ obeyControlHeaders: 'yes' }, 'obeyControlHeaders'],
    [{ disabledReason: 'gone' }, 'disabledReason'],
  ])('are not those of %j, which is 400', async (fields, path) => {
    const { id: appId } = await make.app();
    const body = { url: receiver.url, appId, ...fields };
    expectInvalid(await posthorn.api.post('/webhooks', body), path);
    const { id } = await webhookWith({});
    expectInvalid(await posthorn.api.put(`/webhooks/${id}`, fields), path);
  });

  it('are those of the defaults again when null takes the fields away', async () => {
    const limits = { maxAttempts: 2, finalStatusCodes: [400], onGone: 'disable' };
    const webhook = await webhookWith({ ...limits, obeyControlHeaders: true });
    const none = { maxAttempts: null, finalStatusCodes: null };
    const changes = { ...none, onGone: null, obeyControlHeaders: null };
    const defaults = { ...none, onGone: 'retry', obeyControlHeaders: false };
    expect(await put(webhook, changes)).toMatchObject(defaults);
  });
});
