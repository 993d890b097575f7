import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook as Verifier, WebhookVerificationError } from 'standardwebhooks';
import { eventually } from '../../support/time/eventually.ts';
import { aTime, dataOf, expectInvalid, expectNotFound } from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Received, type Receiver } from '../../support/receivers/receiver.ts';
import {
  createResources,
  withoutAuth,
  type Resources,
  type ShownWebhook,
} from '../../support/api/resources.ts';

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

/** Sends a message to the webhook and returns the request that its endpoint gets. */
async function deliver({ id: webhookId }: ShownWebhook): Promise<Received> {
  const { id } = await make.message({ webhookId, payload: { order: 17, name: 'é' } });
  return eventually('the delivery', () => receiver.of(id)[0]);
}

const verify = (secret: string, { body, headers }: Received): unknown =>
  new Verifier(secret).verify(body.toString(), headers as Record<string, string>);

const hmac = (secret: string, { body }: Received): string =>
  createHmac('sha256', secret).update(body).digest('hex');

describe('Rotation · POST /api/v1/webhooks/{id}/rotate-secret', () => {
  const rotate = async ({ id }: ShownWebhook, body?: object): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.post(`/api/v1/webhooks/${id}/rotate-secret`, body));

  it('returns the webhook with a new secret, and both secrets verify during the grace period', async () => {
    const old = await make.webhook({ url: receiver.url });
    await deliver(old);
    const rotated = await rotate(old, { graceSeconds: 3_600 });
    expect(rotated).toEqual({
      ...withoutAuth(old),
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      updatedAt: aTime,
    });
    expect(rotated.secret).not.toBe(old.secret);
    const got = await deliver(old);
    expect(verify(old.secret, got)).toEqual(verify(rotated.secret, got));
    expect(String(got.headers['webhook-signature']).split(' ')).toHaveLength(2);
    expect(got.headers['x-service-signature']).toBe(hmac(rotated.secret, got));
  });

  it('lets both secrets verify for a day by default', async () => {
    const old = await make.webhook({ url: receiver.url });
    const rotated = await rotate(old);
    const got = await deliver(old);
    expect(verify(old.secret, got)).toEqual(verify(rotated.secret, got));
  });

  it('ends the old secret at once when the grace period is 0 [security]', async () => {
    const old = await make.webhook({ url: receiver.url });
    const { secret } = await rotate(old, { grace_seconds: 0 });
    const got = await deliver(old);
    expect(verify(secret, got)).toBeTruthy();
    expect(() => verify(old.secret, got)).toThrow(WebhookVerificationError);
  });

  it('ends the old secret when the grace period is over [security]', async () => {
    const old = await make.webhook({ url: receiver.url });
    const { secret } = await rotate(old, { graceSeconds: 1 });
    const got = await eventually('one signature', async () => {
      const latest = await deliver(old);
      return String(latest.headers['webhook-signature']).includes(' ') ? null : latest;
    });
    expect(verify(secret, got)).toBeTruthy();
    expect(() => verify(old.secret, got)).toThrow(WebhookVerificationError);
  });

  it('does not change an hmacSecret', async () => {
    const old = await make.webhook({ url: receiver.url, hmacSecret: 'own' });
    await rotate(old);
    const got = await deliver(old);
    expect(got.headers['x-service-signature']).toBe(hmac('own', got));
  });

  it.each([-1, 604_801, 1.5, '60', null])('refuses graceSeconds %j', async (graceSeconds) => {
    const { id } = await make.webhook({ url: receiver.url });
    const path = `/api/v1/webhooks/${id}/rotate-secret`;
    expectInvalid(await posthorn.api.post(path, { graceSeconds }), 'graceSeconds');
    dataOf(await posthorn.api.post(path, { graceSeconds: 604_800 }));
  });

  it('returns 404 for an unknown webhook', async () => {
    expectNotFound(await posthorn.api.post('/api/v1/webhooks/wh_unknown/rotate-secret', {}));
  });
});
