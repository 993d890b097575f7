import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../../support/time/eventually.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { createResources } from '../../support/api/resources.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

describe('A message that is sent to a webhook', () => {
  let posthorn: OwnCompany;
  let receiver: Receiver;

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function newWebhook(fields: object = {}) {
    const { appId } = await posthorn.api.createTarget(receiver.url);
    const { body } = await posthorn.api.post('/webhooks', { url: receiver.url, appId, ...fields });
    return body.data as { id: string; secret: string; authMethod: object };
  }

  async function firstRequest(messageId: string) {
    return eventually('the delivery', () => receiver.of(messageId)[0]);
  }

  it('arrives signed, and the Standard Webhooks library accepts the signature [security]', async () => {
    const webhook = await newWebhook();
    const { messageId } = await posthorn.api.send({ webhookId: webhook.id }, { order: 17 });
    const { headers, body } = await firstRequest(messageId);
    const verified = new Webhook(webhook.secret).verify(
      body.toString(),
      headers as Record<string, string>,
    );
    expect(verified).toEqual({ order: 17 });
    expect(headers['content-type']).toBe('application/json');
    expect(headers['user-agent']).toMatch(/^Posthorn\/\d/);
  });

  it('carries the traceparent of the API request when that is well formed', async () => {
    const { id: webhookId } = await newWebhook();
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    for (const [given, expected] of [
      [traceparent, traceparent],
      ['00-nonsense', undefined],
    ]) {
      const headers = { traceparent: given ?? '' };
      const { body } = await posthorn.api.post(
        '/webhook-messages',
        { webhookId, payload: {} },
        headers,
      );
      const request = await firstRequest((body.data as { id: string }).id);
      expect(request.headers.traceparent).toBe(expected);
    }
  });

  it('carries the hex HMAC of the raw payload under the secret (docs/contract.md C9.4) [security]', async () => {
    const webhook = await newWebhook();
    const { messageId } = await posthorn.api.send({ webhookId: webhook.id }, { order: 18 });
    const { headers, body } = await firstRequest(messageId);
    const expected = createHmac('sha256', webhook.secret).update(body).digest('hex');
    expect(headers['x-service-signature']).toBe(expected);
  });

  it('arrives byte for byte: big integers, 1e400, key order, escapes and spaces are kept [security]', async () => {
    const webhook = await newWebhook();
    const payload = '{ "z":12345678901234567890,"x":1e400, "a":1.0,"a":2,"u":"\\u00e9é\\/😀" }';
    const accepted = await posthorn.api.post(
      '/webhook-messages',
      `{"webhookId":"${webhook.id}", "payload" : ${payload} }`,
    );
    expect(accepted.status).toBe(202);
    const data = accepted.body.data as { id: string; payload: string };
    expect(data.payload).toBe(payload);
    const { body } = await firstRequest(data.id);
    expect(body.toString()).toBe(payload);
  });

  it('carries a payload that does not fit into its record', async () => {
    const webhook = await newWebhook();
    const payload = { text: 'ü'.repeat(100_000) };
    const { messageId } = await posthorn.api.send({ webhookId: webhook.id }, payload);
    const { body } = await firstRequest(messageId);
    expect(JSON.parse(body.toString())).toEqual(payload);
  });

  it('is sent to every webhook of the app it is addressed to', async () => {
    const { appId, webhookId } = await posthorn.api.createTarget(receiver.url);
    const second = await posthorn.api.post('/webhooks', { url: receiver.url, appId });
    const { body } = await posthorn.api.post('/webhook-messages', {
      appId,
      payload: { to: 'all' },
    });
    const data = body.data as { id: string; deliveries: { webhookId: string }[] };
    const both = [webhookId, (second.body.data as { id: string }).id];
    expect(data.deliveries.map((delivery) => delivery.webhookId)).toEqual(both);
    await eventually('both deliveries', () => receiver.of(data.id).length === 2);
  });

  it('is accepted for an app without webhooks, with nothing to deliver', async () => {
    const project = await posthorn.api.post('/projects', { name: 'Empty' });
    const projectId = (project.body.data as { id: string }).id;
    const app = await posthorn.api.post('/api/v1/apps', { name: 'Empty', project_id: projectId });
    const appId = (app.body.data as { id: string }).id;
    const { status, body } = await posthorn.api.post('/webhook-messages', { appId, payload: {} });
    expect(status).toBe(202);
    expect(body.data).toMatchObject({ delivered: false, deliveries: [], deliveryAttempt: null });
  });

  it('has a delivery that is pending before the attempt and delivered after it', async () => {
    const webhook = await newWebhook();
    let respond = (): void => undefined;
    const held = new Promise<void>((resolve) => (respond = resolve));
    receiver.answerWith((response) => {
      void held.then(() => response.writeHead(201, { 'x-request-id': 'r-1' }).end('thanks'));
    });
    const { deliveryId, messageId } = await posthorn.api.send({ webhookId: webhook.id }, {});
    await firstRequest(messageId);
    const before = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
    expect(before.body.data).toMatchObject({ status: 'pending', attemptCount: 0, attempts: [] });
    respond();
    const after = await eventually('delivered', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      const shown = body.data as { status: string };
      return shown.status === 'delivered' && shown;
    });
    expect(after).toMatchObject({
      messageId,
      webhookId: webhook.id,
      attempts: [{ number: 1, outcome: 'success', statusCode: 201, response: 'thanks' }],
    });
    receiver.answerWith((response) => response.writeHead(200).end());
  });

  it('ends cancelled when its webhook is deleted before the retry', async () => {
    const webhook = await newWebhook();
    receiver.answerWith((response) => response.writeHead(500).end());
    const { deliveryId, messageId } = await posthorn.api.send({ webhookId: webhook.id }, {});
    await firstRequest(messageId);
    const deleted = await posthorn.api.request('DELETE', `/webhooks/${webhook.id}`);
    expect(deleted.body).toEqual({ success: true, message: 'Webhook deleted' });
    const delivery = await eventually('cancelled', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      const shown = body.data as { status: string };
      return shown.status === 'cancelled' && shown;
    });
    expect(delivery).toMatchObject({ reason: 'webhook_deleted', attemptCount: 1 });
    expect(receiver.of(messageId)).toHaveLength(1);
    receiver.answerWith((response) => response.writeHead(200).end());
  });

  it('and fails shows when its next attempt is due', async () => {
    const { id: webhookId } = await newWebhook();
    receiver.answerWith(failing(1));
    const { deliveryId } = await posthorn.api.send({ webhookId }, {});
    const make = createResources(posthorn.api);
    const shown = await eventually('the first failure', async () => {
      const delivery = await make.delivery(deliveryId);
      return delivery.attemptCount === 1 ? delivery : null;
    });
    const dueMs = Date.parse(String(shown.nextAttemptAt));
    expect(shown.status).toBe('pending');
    expect(dueMs - Date.parse(String(shown.attempts[0]?.updatedAt))).toBe(3_600_000);
    receiver.answerWith((response) => response.writeHead(200).end());
  });

  it('is authenticated by basic authentication or an API key where the webhook asks for it', async () => {
    const basic = await newWebhook({
      authMethod: 'basic',
      basicAuthUsername: 'user',
      basicAuthPassword: 'pass',
    });
    const keyed = await newWebhook({
      auth_method: 'apiKey',
      apiKey: 'k-1',
      apiKeyHeader: 'X-Their-Key',
      customHeaders: [{ key: 'X-Tenant', value: 't-1' }],
    });
    expect(keyed.authMethod).toEqual({
      method: 'api_key',
      apiKey: 'k-1',
      apiKeyHeader: 'X-Their-Key',
    });
    const first = await posthorn.api.send({ webhookId: basic.id }, {});
    const second = await posthorn.api.send({ webhookId: keyed.id }, {});
    const byBasic = await firstRequest(first.messageId);
    const byKey = await firstRequest(second.messageId);
    expect(byBasic.headers.authorization).toBe('Basic dXNlcjpwYXNz');
    expect(byKey.headers).toMatchObject({ 'x-their-key': 'k-1', 'x-tenant': 't-1' });
  });
});
