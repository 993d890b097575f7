import { describe, expect, it } from '@jest/globals';
import { verify, type VerifyOptions } from '@posthorn/verify';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { createResources } from '../../../support/api/resources.ts';
import { createCompany } from '../../../support/process/companies.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { useCompany, useReceiver } from '../../../support/process/use-company.ts';
import type { Received } from '../../../support/receivers/receiver.ts';
import { eventually } from '../../../support/time/eventually.ts';

describe('A delivery is verified by @posthorn/verify', () => {
  const PAYLOAD = { order: 17, name: 'é' };

  const { posthorn, make } = useCompany('contract');
  const receiver = useReceiver();

  async function deliver(
    webhookId: string,
    { api } = posthorn as Pick<OwnCompany, 'api'>,
  ): Promise<Received> {
    const { messageId } = await api.send({ webhookId }, PAYLOAD);
    return eventually('the delivery', () => receiver.of(messageId)[0]);
  }

  /** Returns the reason why the delivery is refused; null when it is verified. */
  async function refusalOf(got: Received, options: VerifyOptions): Promise<string | null> {
    try {
      const { id, payload, timestamp } = await verify({ ...got, ...options });
      expect(id).toBe(got.headers['webhook-id']);
      expect(payload).toEqual(PAYLOAD);
      expect(Math.abs(Number(timestamp) - got.atMs)).toBeLessThan(60_000);
      return null;
    } catch (error) {
      return (error as { reason?: string }).reason ?? String(error);
    }
  }

  it('a delivery with v1 is verified, by the old and the new secret during a rotation', async () => {
    const { id, secret } = await make.webhook({ url: receiver.url });
    expect(await refusalOf(await deliver(id), { secrets: [secret] })).toBeNull();
    const rotated = await posthorn.api.post(`/api/v1/webhooks/${id}/rotate-secret`, {});
    const { secret: next } = dataOf<{ secret: string }>(rotated);
    // A dispatcher may keep the webhook for two seconds.
    const during = await eventually('a delivery by both secrets', async () => {
      const got = await deliver(id);
      return (await refusalOf(got, { secrets: [next] })) === null ? got : null;
    });
    expect(await refusalOf(during, { secrets: [secret] })).toBeNull();
    const { secret: other } = await make.webhook({ url: receiver.url });
    expect(await refusalOf(during, { secrets: [other] })).toBe('no_match');
    expect(await refusalOf({ ...during, body: Buffer.from('{}') }, { secrets: [next] })).toBe(
      'no_match',
    );
  });

  it('a delivery with v1a is verified, by the published keys of the company, through a rotation', async () => {
    const company = await createCompany(posthorn, 'Verified');
    const fields = { url: receiver.url, signatureAlgorithm: 'ed25519' };
    const { id } = await createResources(company.api).webhook(fields);
    const addressOf = (companyId: string): string =>
      `${posthorn.baseUrl}/.well-known/webhooks-keys/${companyId}`;
    const jwksUrl = addressOf(company.companyId);
    const first = await deliver(id, company);
    expect(await refusalOf(first, { jwksUrl })).toBeNull();
    expect(await refusalOf(first, { jwksUrl: addressOf(posthorn.companyId) })).toBe('no_match');

    dataOf(await company.api.post('/api/v1/signing-keys/rotate', { graceSeconds: 0 }), 201);
    // A dispatcher may keep keys for some seconds. The clock of the receiver is past the time between two requests.
    const nowMs = (): number => Date.now() + 20_000;
    await eventually('a delivery by the new key', async () => {
      const got = await deliver(id, company);
      return (await refusalOf(got, { jwksUrl, nowMs })) === null || null;
    });
    expect(await refusalOf(first, { jwksUrl, nowMs })).toBe('no_match');
  });

  it('a delivery with the signature of the service is verified, in its own header and in another one', async () => {
    const { id, secret } = await make.webhook({ url: receiver.url });
    const own = { secrets: [secret], serviceSignature: true };
    expect(await refusalOf(await deliver(id), own)).toBeNull();
    const hmac = { hmacHeader: 'X-Own', hmacSecret: 'not base64 !' };
    const named = await make.webhook({ url: receiver.url, ...hmac });
    const got = await deliver(named.id);
    const options = { secrets: [hmac.hmacSecret], serviceSignature: hmac.hmacHeader };
    expect(await refusalOf(got, options)).toBeNull();
    expect(await refusalOf(got, own)).toBe('missing_header');
  });
});
