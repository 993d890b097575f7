import { beforeAll, describe, expect, it } from '@jest/globals';
import { createHmac } from 'node:crypto';
import type { ApiAnswer, ApiClient } from '../../../support/api/api-client.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import { dataOf, expectInvalid } from '../../../support/api/expect-answers.ts';
import type { ShownWebhook } from '../../../support/api/resources.ts';
import {
  createSessionClient,
  makePortalLink,
  openLink,
} from '../../../support/api/session-client.ts';
import { useCompany, useReceiver } from '../../../support/process/use-company.ts';
import type { Received } from '../../../support/receivers/receiver.ts';
import {
  installSvixLibraries,
  type SignedRequest,
  SVIX_LIBRARIES,
  type VerifyAsSvix,
} from '../../../support/receivers/svix-verifiers.ts';
import { eventually } from '../../../support/time/eventually.ts';

const MASK = '********';
const secretOf = (bytes: number, fill: number): string =>
  `whsec_${Buffer.alloc(bytes, fill).toString('base64')}`;
/** As Svix makes them: 24 bytes. */
const OLD = secretOf(24, 0xfb);
const OTHER = secretOf(64, 0x17);
const SVIX = { signatureHeaders: ['webhook', 'svix'] };

const { posthorn, make } = useCompany('contract');
const receiver = useReceiver();

/** Sends a message to the webhook and returns the request that its endpoint gets. */
async function deliver({ id: webhookId }: ShownWebhook): Promise<Received> {
  const { id } = await make.message({ webhookId, payload: { order: 17, name: 'é' } });
  return eventually('the delivery', () => receiver.of(id)[0]);
}

const rotate = ({ id }: ShownWebhook, body: object, api = posthorn.api): Promise<ApiAnswer> =>
  api.post(`/api/v1/webhooks/${id}/rotate-secret`, body);

const get = async ({ id }: ShownWebhook): Promise<ShownWebhook> =>
  dataOf(await posthorn.api.get(`/webhooks/${id}`));

describe('An endpoint that was moved here from Svix with its secret', () => {
  let libraries: ReadonlyMap<string, VerifyAsSvix>;

  beforeAll(async () => {
    libraries = await installSvixLibraries();
  }, 600_000);

  const verifierOf = (name: string): VerifyAsSvix => {
    const verify = libraries.get(name);
    if (!verify) throw new Error(`${name} is not installed`);
    return verify;
  };

  function requestOf(secret: string, { headers, body }: Received, prefix = ''): SignedRequest {
    const kept = Object.entries(headers).filter(([name]) => name.startsWith(prefix));
    const texts = Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
    return { secret, headers: texts, body: body.toString() };
  }

  it.each(SVIX_LIBRARIES.map(({ name }) => name))(
    'accepts deliveries unchanged with %s, also during a rotation',
    async (name) => {
      const webhook = await make.webhook({ url: receiver.url, secret: OLD, ...SVIX });
      const got = await deliver(webhook);
      dataOf(await rotate(webhook, { secret: OTHER, graceSeconds: 3_600 }));
      const later = await eventually('a delivery with both signatures', async () => {
        const latest = await deliver(webhook);
        return String(latest.headers['webhook-signature']).includes(' ') ? latest : null;
      });
      const accepted = [
        requestOf(OLD, got),
        // Older versions know no other headers than these.
        requestOf(OLD, got, 'svix-'),
        requestOf(OLD, later),
        requestOf(OTHER, later, 'svix-'),
      ];
      const refused = [requestOf(OTHER, got), { ...requestOf(OLD, got), body: '{}' }];
      expect(await verifierOf(name)([...accepted, ...refused])).toEqual([
        ...accepted.map(() => 'accepted'),
        ...refused.map(() => 'WebhookVerificationError'),
      ]);
    },
    180_000,
  );
});

describe('signatureHeaders', () => {
  const svixOf = ({ headers }: Received): Record<string, unknown> =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('svix-')));

  it('adds the headers of Svix with the same values, and takes them away again', async () => {
    const webhook = await make.webhook({ url: receiver.url });
    expect(webhook).toMatchObject({ signatureHeaders: ['webhook'] });
    expect(svixOf(await deliver(webhook))).toEqual({});

    const put = (fields: object) => posthorn.api.put(`/webhooks/${webhook.id}`, fields);
    expect(dataOf(await put({ signature_headers: ['webhook', 'svix'] }))).toMatchObject(SVIX);
    const got = await eventually('the headers of Svix', async () => {
      const latest = await deliver(webhook);
      return 'svix-id' in latest.headers ? latest : null;
    });
    expect(svixOf(got)).toEqual({
      'svix-id': got.headers['webhook-id'],
      'svix-timestamp': got.headers['webhook-timestamp'],
      'svix-signature': got.headers['webhook-signature'],
    });
    const shown = await make.message({ webhookId: webhook.id });
    expect(shown.headers.slice(-2)).toEqual([
      { key: 'webhook-id', value: shown.id },
      { key: 'svix-id', value: shown.id },
    ]);
    dataOf(await put({ signatureHeaders: ['webhook'] }));
    expect(await get(webhook)).toMatchObject({ signatureHeaders: ['webhook'] });
  });

  it('has them with ed25519 too', async () => {
    const fields = { signatureAlgorithm: 'ed25519', ...SVIX };
    const got = await deliver(await make.webhook({ url: receiver.url, ...fields }));
    expect(svixOf(got)['svix-signature']).toMatch(/^v1a,/);
    expect(svixOf(got)['svix-signature']).toBe(got.headers['webhook-signature']);
  });

  it.each([
    [{ signatureHeaders: [] }, 'signatureHeaders'],
    [{ signatureHeaders: ['svix'] }, 'signatureHeaders'],
    [{ signatureHeaders: ['webhook', 'webhook'] }, 'signatureHeaders'],
    [{ signatureHeaders: ['webhook', 'x'] }, 'signatureHeaders.1'],
    [{ signatureHeaders: 'svix' }, 'signatureHeaders'],
    [{ customHeaders: [{ key: 'Svix-Id', value: 'v' }] }, 'customHeaders.0.key'],
    [{ hmacHeader: 'svix-signature' }, 'hmacHeader'],
    [{ authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'SVIX-KEY' }, 'apiKeyHeader'],
  ])('is 400 with %j, at creation and at an update', async (fields, path) => {
    const { id, ...webhook } = await make.webhook({ url: receiver.url });
    const { id: appId } = await make.app();
    const body = { url: webhook.url, appId, ...fields };
    expectInvalid(await posthorn.api.post('/webhooks', body), path);
    expectInvalid(await posthorn.api.put(`/webhooks/${id}`, fields), path);
  });
});

describe('A secret that the client chooses [security]', () => {
  it('is the secret of the webhook from its creation, and of its HMAC', async () => {
    const webhook = await make.webhook({ url: receiver.url, secret: OLD });
    expect(webhook).toMatchObject({ secret: OLD, authMethod: { hmacSecret: OLD } });
    expect(await get(webhook)).toEqual(webhook);
    const { headers, body } = await deliver(webhook);
    const hmac = createHmac('sha256', OLD).update(body).digest('hex');
    expect(headers['x-service-signature']).toBe(hmac);
  });

  it('is in the audit log as client-chosen, and its value is not', async () => {
    const webhook = await make.webhook({ url: receiver.url, secret: OLD });
    dataOf(await rotate(webhook, { secret: OTHER }));
    dataOf(await rotate(webhook, {}));
    const events = await readAuditEvents(posthorn.api, { targetId: webhook.id });
    const secretIn = events.map(({ changes }) => changes.filter(({ field }) => field === 'secret'));
    expect(secretIn).toEqual([
      [{ field: 'secret', before: MASK, after: MASK }],
      [{ field: 'secret', before: MASK, after: 'client-chosen' }],
      [{ field: 'secret', before: null, after: 'client-chosen' }],
    ]);
    expect(JSON.stringify(events)).not.toContain(OLD);
    expect(JSON.stringify(events)).not.toContain(OTHER);
  });

  it.each([
    secretOf(23, 7),
    secretOf(65, 7),
    OLD.replace('whsec_', ''),
    secretOf(25, 7).replace(/=+$/, ''),
    'whsec_',
    '',
    7,
  ])('is 400 as %j, at creation and at a rotation', async (secret) => {
    const webhook = await make.webhook({ url: receiver.url });
    const { id: appId } = await make.app();
    expectInvalid(
      await posthorn.api.post('/webhooks', { url: receiver.url, appId, secret }),
      'secret',
    );
    expectInvalid(await rotate(webhook, { secret }), 'secret');
  });

  it('is no field of an update', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    expectInvalid(await posthorn.api.put(`/webhooks/${id}`, { secret: OLD }), 'secret');
  });

  it('that the webhook has already leaves the grace of the one before as it is', async () => {
    const webhook = await make.webhook({ url: receiver.url, secret: OLD });
    const rotated = dataOf<object>(await rotate(webhook, { secret: OTHER, graceSeconds: 3_600 }));
    const again = dataOf<object>(await rotate(webhook, { secret: OTHER, graceSeconds: 3_600 }));
    expect({ ...again, updatedAt: null }).toEqual({ ...rotated, updatedAt: null });
    expect(String((await deliver(webhook)).headers['webhook-signature']).split(' ')).toHaveLength(
      2,
    );
    dataOf(await rotate(webhook, { secret: OTHER, graceSeconds: 0 }));
    await eventually('one signature', async () => {
      const { headers } = await deliver(webhook);
      return !String(headers['webhook-signature']).includes(' ');
    });
    expect(await get(webhook)).toMatchObject({ secret: OTHER });
  });

  it('may be given by a visitor of the portal who sees no secrets, and is masked for them', async () => {
    const { id: appId } = await make.app();
    const visitor = await visit(appId);
    const created = await visitor.post('/webhooks', { url: receiver.url, appId, secret: OLD });
    const webhook = dataOf<ShownWebhook>(created, 201);
    expect(webhook).toMatchObject({ secret: MASK, authMethod: { hmacSecret: MASK } });
    expect(await get(webhook)).toMatchObject({ secret: OLD });
    expect(dataOf(await rotate(webhook, { secret: OTHER }, visitor))).toMatchObject({
      secret: MASK,
    });
    expect(await get(webhook)).toMatchObject({ secret: OTHER });
  });

  async function visit(appId: string): Promise<ApiClient> {
    const link = await makePortalLink(posthorn.api, appId, { capabilities: ['manage'] });
    const cookie = await openLink(posthorn.baseUrl, link);
    return createSessionClient(posthorn.baseUrl, cookie, 'portal');
  }
});
