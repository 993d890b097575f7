import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHmac, X509Certificate } from 'node:crypto';
import { Webhook as Verifier, WebhookVerificationError } from 'standardwebhooks';
import { type ApiClient, createApiClient } from '../../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import {
  createResources,
  type Resources,
  type ShownWebhook,
  withoutAuth,
} from '../../../support/api/resources.ts';
import { createCompany } from '../../../support/process/companies.ts';
import { useCompany, useReceiver } from '../../../support/process/use-company.ts';
import {
  type ClientCertificateEndpoint,
  startClientCertificateEndpoint,
} from '../../../support/receivers/client-certificate-endpoint.ts';
import type { Received } from '../../../support/receivers/receiver.ts';
import { selfSigned, type SelfSigned } from '../../../support/receivers/self-signed.ts';
import { type JwkSet, verifiedBy } from '../../../support/receivers/verify-with-jwks.ts';
import { eventually } from '../../../support/time/eventually.ts';

describe('Signing keys', () => {
  interface ShownSigningKey {
    id: string;
    publicKey: string;
    createdAt: string;
    expiresAt: string | null;
  }

  const KEYS = '/api/v1/signing-keys';
  const ED25519 = { signatureAlgorithm: 'ed25519' };

  const { posthorn } = useCompany('contract');
  const receiver = useReceiver();

  /** A company of its own for each test: keys belong to the company. */
  async function newCompany(): Promise<{ api: ApiClient; companyId: string }> {
    return createCompany(posthorn, 'Signing');
  }

  /** As a receiver reads them: without an API key. */
  async function publicKeysOf(companyId: string): Promise<JwkSet> {
    const response = await fetch(`${posthorn.baseUrl}/.well-known/webhooks-keys/${companyId}`);
    expect(response.status).toBe(200);
    return (await response.json()) as JwkSet;
  }

  /** Sends a message to the webhook and returns the request that its endpoint gets. */
  async function deliver(api: ApiClient, { id: webhookId }: ShownWebhook): Promise<Received> {
    const { messageId } = await api.send({ webhookId }, { order: 17, name: 'é' });
    return eventually('the delivery', () => receiver.of(messageId)[0]);
  }

  const rotate = async (api: ApiClient, body?: object): Promise<ShownSigningKey> =>
    dataOf(await api.post(`${KEYS}/rotate`, body), 201);

  /** Delivers until these keys have signed: a dispatcher may keep keys for some seconds. */
  function deliverSignedBy(
    api: ApiClient,
    webhook: ShownWebhook,
    { known, by }: { known: JwkSet; by: string[] },
  ): Promise<Received> {
    return eventually(`signatures by ${by.join(' and ')}`, async () => {
      const got = await deliver(api, webhook);
      const verified = await verifiedBy(known, got);
      return verified.join() === by.join() ? got : null;
    });
  }

  describe('A webhook with signatureAlgorithm ed25519', () => {
    it('is verified with nothing but the public keys, through a rotation', async () => {
      const { api, companyId } = await newCompany();
      expect(dataOf(await api.get(KEYS))).toEqual([]);
      const webhook = await createResources(api).webhook({ url: receiver.url, ...ED25519 });
      expect(webhook.authMethod).toMatchObject({ method: 'hmac', ...ED25519 });
      const [first] = dataOf<ShownSigningKey[]>(await api.get(KEYS));
      expect(first).toEqual({
        id: anId('skey'),
        algorithm: 'ed25519',
        publicKey: expect.stringMatching(/^whpk_[A-Za-z0-9+/]{43}=$/),
        createdAt: aTime,
        expiresAt: null,
      });
      const firstId = String(first?.id);

      const before = await publicKeysOf(companyId);
      expect(before.keys.map(({ kid }) => kid)).toEqual([firstId]);
      const got = await deliver(api, webhook);
      expect(await verifiedBy(before, got)).toEqual([firstId]);
      expect(String(got.headers['webhook-signature'])).toMatch(/^v1a,[^ ]+$/);
      expect(got.headers['x-service-signature']).toBeUndefined();

      const second = await rotate(api, { graceSeconds: 3_600 });
      expect(second.expiresAt).toBeNull();
      const during = await publicKeysOf(companyId);
      expect(during.keys.map(({ kid }) => kid)).toEqual([second.id, firstId]);
      const shown = dataOf<ShownSigningKey[]>(await api.get(KEYS));
      expect(shown.map(({ id, expiresAt }) => [id, expiresAt])).toEqual([
        [firstId, aTime],
        [second.id, null],
      ]);
      const both = await deliverSignedBy(api, webhook, {
        known: during,
        by: [second.id, firstId],
      });
      expect(await verifiedBy(before, both)).toEqual([firstId]);

      const third = await rotate(api, { graceSeconds: 0 });
      const after = await publicKeysOf(companyId);
      expect(after.keys.map(({ kid }) => kid)).toEqual([third.id]);
      const last = await deliverSignedBy(api, webhook, { known: after, by: [third.id] });
      expect(await verifiedBy(during, last)).toEqual([]);
    });

    it('is changed from hmac-sha256 and back, and its HMAC is the same again', async () => {
      const { api, companyId } = await newCompany();
      const fields = { url: receiver.url, hmacHeader: 'X-Own', hmacSecret: 'own' };
      const webhook = await createResources(api).webhook(fields);
      /** Delivers until the webhook is as it was changed: a dispatcher may keep it for some seconds. */
      const deliverOnce = (isChanged: (got: Received) => boolean): Promise<Received> =>
        eventually('the changed webhook', async () => {
          const got = await deliver(api, webhook);
          return isChanged(got) ? got : null;
        });
      const hasHmac = ({ headers }: Received): boolean => headers['x-own'] !== undefined;
      const expectHmac = async (): Promise<void> => {
        const got = await deliverOnce(hasHmac);
        const hmac = createHmac('sha256', 'own').update(got.body).digest('hex');
        expect(got.headers['x-own']).toBe(hmac);
        const verifier = new Verifier(webhook.secret);
        expect(verifier.verify(got.body.toString(), got.headers as Record<string, string>)).toEqual(
          {
            order: 17,
            name: 'é',
          },
        );
        expect(await verifiedBy(await publicKeysOf(companyId), got)).toEqual([]);
      };
      await expectHmac();
      expect(await publicKeysOf(companyId)).toEqual({ keys: [] });

      dataOf(await api.put(`/webhooks/${webhook.id}`, { signature_algorithm: 'ed25519' }));
      const got = await deliverOnce((each) => !hasHmac(each));
      expect(await verifiedBy(await publicKeysOf(companyId), got)).toHaveLength(1);
      const path = `/webhooks/${webhook.id}`;
      expectInvalid(await api.put(path, { hmacSecret: 'other' }), 'hmacSecret');

      dataOf(await api.put(path, { signatureAlgorithm: 'hmac-sha256' }));
      await expectHmac();
      expect(dataOf<ShownWebhook>(await api.get(path)).authMethod).toEqual(webhook.authMethod);
    });

    it('shows no signature header before its attempts, and an HMAC with its secret as the signature', async () => {
      const { api } = await newCompany();
      const make = createResources(api);
      const { id: webhookId, secret } = await make.webhook({ url: receiver.url, ...ED25519 });
      const { signature, headers, payload } = await make.message({ webhookId });
      expect(signature).toBe(createHmac('sha256', secret).update(payload).digest('hex'));
      const names = headers.map(({ key }) => key);
      expect(names).toEqual([
        ...['Content-Type', 'User-Agent', 'Accept', 'Accept-Encoding', 'webhook-id'],
      ]);
    });

    it.each([
      [{ ...ED25519, hmacSecret: 's' }, 'hmacSecret'],
      [{ ...ED25519, hmacHeader: 'X-Sig' }, 'hmacHeader'],
      [{ signatureAlgorithm: 'ES256' }, 'signatureAlgorithm'],
      [
        { ...ED25519, authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' },
        'signatureAlgorithm',
      ],
    ])('is not created with %j', async (auth, path) => {
      const { id: appId } = await createResources(posthorn.api).app();
      expectInvalid(
        await posthorn.api.post('/webhooks', { url: receiver.url, appId, ...auth }),
        path,
      );
    });
  });

  describe('The signing keys of a company [security]', () => {
    it('are one key when the first webhooks are made at once', async () => {
      const { api, companyId } = await newCompany();
      const make = createResources(api);
      const { id: appId } = await make.app();
      const webhook = { url: receiver.url, appId, ...ED25519 };
      await Promise.all(Array.from({ length: 10 }, () => make.webhook(webhook)));
      expect((await publicKeysOf(companyId)).keys).toHaveLength(1);
    });

    it('are separate for each company, and closed to a key of one app', async () => {
      const [ours, theirs] = [await newCompany(), await newCompany()];
      const { id } = await rotate(ours.api);
      expect(dataOf(await theirs.api.get(KEYS))).toEqual([]);
      expect(await publicKeysOf(theirs.companyId)).toEqual({ keys: [] });
      const { id: appId } = await createResources(ours.api).app();
      const made = await ours.api.post('/api/v1/api-keys', { name: 'App', appId });
      const { key } = dataOf<{ key: string }>(made, 201);
      const ofApp = createApiClient(posthorn.baseUrl, key);
      expectFailure(await ofApp.get(KEYS), 403, 'insufficient_scope');
      expectFailure(await ofApp.post(`${KEYS}/rotate`, {}), 403, 'insufficient_scope');
      expect((await publicKeysOf(ours.companyId)).keys.map(({ kid }) => kid)).toEqual([id]);
    });

    it('get the rate limits of their address, and no envelope', async () => {
      const path = `/.well-known/webhooks-keys/${posthorn.companyId}`;
      const response = await fetch(posthorn.baseUrl + path);
      expect(response.headers.get('ratelimit-policy')).toMatch(/^"address"/);
      expect(response.headers.get('cache-control')).toBe('public, max-age=300');
      expect(await response.json()).toEqual({ keys: [] });
    });

    it.each([-1, 604_801, '60'])('are not rotated with graceSeconds %j', async (graceSeconds) => {
      expectInvalid(await posthorn.api.post(`${KEYS}/rotate`, { graceSeconds }), 'graceSeconds');
    });
  });
});

describe('Rotation · POST /api/v1/webhooks/{id}/rotate-secret', () => {
  const { posthorn, make } = useCompany('contract');
  const receiver = useReceiver();

  /** Sends a message to the webhook and returns the request that its endpoint gets. */
  async function deliver({ id: webhookId }: ShownWebhook): Promise<Received> {
    const { id } = await make.message({ webhookId, payload: { order: 17, name: 'é' } });
    return eventually('the delivery', () => receiver.of(id)[0]);
  }

  const verify = (secret: string, { body, headers }: Received): unknown =>
    new Verifier(secret).verify(body.toString(), headers as Record<string, string>);

  const hmac = (secret: string, { body }: Received): string =>
    createHmac('sha256', secret).update(body).digest('hex');

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
    // A dispatcher may keep the webhook of before for some seconds.
    const got = await eventually('two signatures', async () => {
      const latest = await deliver(old);
      return String(latest.headers['webhook-signature']).split(' ').length === 2 ? latest : null;
    });
    expect(verify(old.secret, got)).toEqual(verify(rotated.secret, got));
    expect(got.headers['x-service-signature']).toBe(hmac(rotated.secret, got));
  });

  it('keeps both secrets valid for a day by default', async () => {
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

  it.each([-1, 604_801, 1.5, '60'])('refuses graceSeconds %j', async (graceSeconds) => {
    const { id } = await make.webhook({ url: receiver.url });
    const path = `/api/v1/webhooks/${id}/rotate-secret`;
    expectInvalid(await posthorn.api.post(path, { graceSeconds }), 'graceSeconds');
    dataOf(await posthorn.api.post(path, { graceSeconds: 604_800 }));
  });

  it('returns 404 for an unknown webhook', async () => {
    expectNotFound(await posthorn.api.post('/api/v1/webhooks/wh_unknown/rotate-secret', {}));
  });
});

describe('A webhook whose endpoint demands a certificate and has a private authority [security]', () => {
  const HOST = '127.0.0.1';
  const endpointCertificate = selfSigned(HOST);
  const first = selfSigned('first.posthorn.example');
  const renewed = selfSigned('renewed.posthorn.example');

  const { posthorn } = useCompany('contract');
  let resources: Resources;
  let endpoint: ClientCertificateEndpoint;

  beforeAll(async () => {
    resources = createResources(posthorn.api);
    endpoint = await startClientCertificateEndpoint(HOST, {
      own: endpointCertificate,
      clients: [first.cert, renewed.cert],
    });
  }, 120_000);

  afterAll(async () => {
    await endpoint.close();
  });

  interface ShownCertificate {
    subject: string;
    fingerprint256: string;
    notAfter: string;
  }

  type ShownTls = Record<'certificate' | 'ca', ShownCertificate[]>;

  const fingerprintOf = ({ cert }: SelfSigned): string => new X509Certificate(cert).fingerprint256;
  const tlsOf = ({ cert, key }: SelfSigned): object => ({
    certificate: cert,
    key,
    ca: endpointCertificate.cert,
  });

  async function deliver(webhookId: string): Promise<void> {
    const { deliveryId } = await posthorn.api.send({ webhookId }, { order: 17 });
    await resources.deliveryOnce('delivered', deliveryId);
  }

  it('is delivered, also after its certificate was renewed', async () => {
    const webhook = await resources.webhook({ url: endpoint.url, tls: tlsOf(first) });
    await deliver(webhook.id);
    expect(endpoint.clients.splice(0)).toEqual([fingerprintOf(first)]);

    await posthorn.api.put(`/webhooks/${webhook.id}`, { tls: tlsOf(renewed) });
    // A dispatcher may keep the webhook of before for some seconds.
    await eventually('the renewed certificate', async () => {
      await deliver(webhook.id);
      return endpoint.clients.splice(0).join() === fingerprintOf(renewed);
    });
  });

  it('shows its certificates at creation and get, and its key nowhere', async () => {
    const created = await resources.webhook({ url: endpoint.url, tls: tlsOf(first) });
    const { tls } = created as unknown as { tls: ShownTls };
    expect(tls.certificate).toEqual([
      {
        subject: 'CN=first.posthorn.example',
        issuer: 'CN=first.posthorn.example',
        fingerprint256: fingerprintOf(first),
        notBefore: expect.any(String),
        notAfter: expect.any(String),
      },
    ]);
    expect(tls.ca.map(({ subject }) => subject)).toEqual([`CN=${HOST}`]);
    const path = `/webhooks/${created.id}`;
    const got = await posthorn.api.get(path);
    expect(dataOf(got)).toEqual(created);
    const answers = [
      got,
      await posthorn.api.get('/webhooks'),
      await posthorn.api.put(path, { name: 'Renamed' }),
      await posthorn.api.get('/api/v1/audit-events?limit=100'),
    ];
    const secretPart = first.key.split('\n')[1];
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(JSON.stringify(body)).not.toContain(secretPart);
    }
    expect(dataOf(await posthorn.api.get(path))).toMatchObject({ name: 'Renamed', tls });
  });

  it('has the defaults again with null', async () => {
    const { id } = await resources.webhook({ url: endpoint.url, tls: tlsOf(first) });
    const path = `/webhooks/${id}`;
    await posthorn.api.put(path, { tls: null });
    expect(dataOf(await posthorn.api.get(path))).not.toHaveProperty('tls');
    const { deliveryId } = await posthorn.api.send({ webhookId: id }, { order: 17 });
    const outcome = await eventually('the attempt', async () => {
      const { attempts } = await resources.delivery(deliveryId);
      return attempts[0]?.outcome;
    });
    expect(outcome).toBe('tls_error');
  });

  it('is refused with the position of the mistake', async () => {
    const { id: appId } = await resources.app();
    const refused = (tls: unknown, ...paths: string[]) =>
      posthorn.api.post('/webhooks', { appId, url: endpoint.url, tls }).then((answer) => {
        expectInvalid(answer, ...paths);
      });
    await refused({}, 'tls.certificate');
    await refused({ certificate: first.cert }, 'tls.key');
    await refused({ certificate: first.cert, key: renewed.key }, 'tls.key');
    await refused({ ca: first.key }, 'tls.ca');
    await refused({ ca: 'x'.repeat(8_193) }, 'tls.ca');
    await refused('text', 'tls');
  });
});
