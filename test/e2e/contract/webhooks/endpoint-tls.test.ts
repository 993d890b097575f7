import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { dataOf, expectInvalid } from '../../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../../support/api/resources.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import {
  startClientCertificateEndpoint,
  type ClientCertificateEndpoint,
} from '../../../support/receivers/client-certificate-endpoint.ts';
import { selfSigned, type SelfSigned } from '../../../support/receivers/self-signed.ts';
import { eventually } from '../../../support/time/eventually.ts';

const HOST = '127.0.0.1';
const endpointCertificate = selfSigned(HOST);
const first = selfSigned('first.posthorn.example');
const renewed = selfSigned('renewed.posthorn.example');

let posthorn: OwnCompany;
let resources: Resources;
let endpoint: ClientCertificateEndpoint;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  resources = createResources(posthorn.api);
  endpoint = await startClientCertificateEndpoint(HOST, {
    own: endpointCertificate,
    clients: [first.cert, renewed.cert],
  });
}, 120_000);

afterAll(async () => {
  await endpoint.close();
  await posthorn.stop();
}, 60_000);

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

describe('A webhook whose endpoint demands a certificate and has a private authority [security]', () => {
  it('is delivered, also after its certificate was renewed', async () => {
    const webhook = await resources.webhook({ url: endpoint.url, tls: tlsOf(first) });
    await deliver(webhook.id);
    expect(endpoint.clients.splice(0)).toEqual([fingerprintOf(first)]);

    await posthorn.api.put(`/webhooks/${webhook.id}`, { tls: tlsOf(renewed) });
    await deliver(webhook.id);
    expect(endpoint.clients.splice(0)).toEqual([fingerprintOf(renewed)]);
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

  it('is refused with what says where the mistake is', async () => {
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
