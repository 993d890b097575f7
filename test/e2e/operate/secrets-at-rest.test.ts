import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { Webhook } from 'standardwebhooks';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { ShownMessage } from '../../support/api/resources.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { readEverything } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';
import {
  ADMIN,
  startPosthorn,
  type Posthorn,
  type RunningService,
} from '../../support/process/posthorn.ts';
import { startReceiver } from '../../support/receivers/receiver.ts';
import { verifiedBy, type JwkSet } from '../../support/receivers/verify-with-jwks.ts';
import { printedAuditEvents } from '../../support/process/printed-audit-events.ts';
import { runProgram } from '../../support/process/service-process.ts';

const HMAC = { hmacSecret: 'hush-hmac-secret' };
const BASIC = {
  authMethod: 'basic',
  basicAuthUsername: 'hush-user',
  basicAuthPassword: 'hush-password',
};
const KEYED = { authMethod: 'apiKey', apiKey: 'hush-api-key', apiKeyHeader: 'X-Their-Key' };
const CUSTOM = { customHeaders: [{ key: 'X-Tenant', value: 'hush-tenant' }] };

interface Created {
  id: string;
  secret: string;
}

describe('The secrets of webhooks [security]', () => {
  let posthorn: Posthorn;
  const receiver = useReceiver();
  let dispatcher: RunningService;
  let mongo: MongoConnection;
  let appId: string;
  let webhooks: Created[] = [];
  let asymmetric: Created;
  /** The encryption key after the rotation. */
  let lastKey: string;

  beforeAll(async () => {
    // Longer than a webhook is cached: each attempt reads it again. Before the last one, much is to be looked at.
    posthorn = await startPosthorn({ RETRY_DELAYS: '3s,20s' });
    dispatcher = posthorn.dispatcher;
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    ({ appId } = await posthorn.api.createTarget(receiver.url));
    webhooks = await Promise.all(
      [HMAC, BASIC, KEYED].map(async (auth) => {
        const body = { url: receiver.url, appId, ...auth, ...CUSTOM };
        return (await posthorn.api.post('/webhooks', body)).body.data as Created;
      }),
    );
  }, 120_000);

  afterAll(async () => {
    await mongo.close();
    await posthorn.stop();
  });

  /** Returns the ids of the messages. */
  async function expectSignedDeliveries(): Promise<string[]> {
    const messageIds: string[] = [];
    for (const { id, secret } of webhooks) {
      const { messageId } = await posthorn.api.send({ webhookId: id }, { to: id });
      const { headers, body } = await eventually('delivery', () => receiver.of(messageId)[0]);
      const verified = new Webhook(secret).verify(String(body), headers as Record<string, string>);
      expect(verified).toEqual({ to: id });
      expect(headers['x-tenant']).toBe('hush-tenant');
      messageIds.push(messageId);
    }
    const credentials = receiver.received.slice(-3).map(({ headers }) => headers);
    const basic = Buffer.from('hush-user:hush-password').toString('base64');
    expect(credentials[1]?.authorization).toBe(`Basic ${basic}`);
    expect(credentials[2]?.['x-their-key']).toBe('hush-api-key');
    return messageIds;
  }

  it('sign and authenticate deliveries, and stand nowhere in the database', async () => {
    const messageIds = await expectSignedDeliveries();
    // Results are stored up to 100 ms after their requests.
    const everything = await eventually('the results are stored', async () => {
      // Binary fields included.
      const read = await readEverything(mongo.db);
      const deliveries = JSON.stringify(read.deliveries);
      return messageIds.every((id) => deliveries.includes(id)) ? read : null;
    });
    const stored = JSON.stringify(everything);
    expect(stored).toContain(webhooks[0]?.id);
    for (const name of ['messages', 'deliveries']) {
      const text = JSON.stringify(everything[name]);
      for (const messageId of messageIds) expect(text).toContain(messageId);
    }
    const secrets = ['hush', posthorn.apiKey, ...webhooks.map(({ secret }) => secret)];
    for (const secret of secrets) {
      expect(stored).not.toContain(secret);
      expect(stored).not.toContain(Buffer.from(secret).toString('base64').slice(0, -4));
      expect(stored).not.toContain(secret.replace(/^(whsec_|phk_)/, ''));
    }
  });

  /** Expects the other webhooks to work while one cannot be opened; returns the accepted messages. */
  async function acceptBesides(damagedId: string): Promise<string[]> {
    const listed = (await posthorn.api.get('/webhooks')).body.data as Created[];
    expect(listed).toHaveLength(webhooks.length);
    expect(listed.map(({ id }) => id)).not.toContain(damagedId);
    const targets = [{ appId }, { webhookId: damagedId }];
    const [toApp, toItself] = await Promise.all(
      targets.map((target) => posthorn.api.post('/webhook-messages', { ...target, payload: {} })),
    );
    expect([toApp?.status, toItself?.status]).toEqual([202, 202]);
    expect((toApp?.body.data as { deliveries: object[] }).deliveries).toHaveLength(
      webhooks.length + 1,
    );
    expect(toItself?.body.data).toMatchObject({ signature: null, headers: [] });
    return [toApp, toItself].map((answer) => (answer?.body.data as Created).id);
  }

  it('stop all deliveries of their webhook when they are tampered with, until they are restored', async () => {
    const respond = receiver.hold();
    const [{ id: webhookId } = { id: '' }, other] = webhooks;
    const documents = mongo.db.collection<{ _id: string; sealed: { secret: string } }>('webhooks');
    const { messageId, deliveryId } = await posthorn.api.send({ webhookId }, {});
    // Not read through the API, which would have to open the webhook to show it.
    const deliveries = mongo.db.days.deliveries.of(deliveryId);
    const attempts = async (count: number) =>
      eventually(`attempt ${count}`, async () => {
        const made = (await deliveries.findOne({ _id: deliveryId }))?.attempts ?? [];
        return made.length === count && made.map(({ outcome }) => outcome);
      });
    await eventually('the first request', () => receiver.of(messageId).length === 1);
    const untouched = await documents.findOne({ _id: webhookId });
    const stolen = await documents.findOne({ _id: other?.id ?? '' });
    const $set = { 'sealed.secret': stolen?.sealed.secret ?? '' };
    await documents.updateOne({ _id: webhookId }, { $set });
    respond(500);
    expect(await attempts(2)).toEqual(['http_5xx', 'aborted']);
    expect(receiver.of(messageId)).toHaveLength(1);
    const line = await eventually('the line in the log', () =>
      dispatcher
        .output()
        .split('\n')
        .find((text) => text.includes('cannot be opened')),
    );
    expect(JSON.parse(line)).toMatchObject({ level: 'error', webhookId });

    const answer = await posthorn.api.get(`/webhooks/${webhookId}`);
    expect(answer.status).toBe(500);
    expect(answer.body).toMatchObject({ success: false, code: 'internal_error' });
    expect(JSON.stringify(answer.body)).not.toMatch(/seal|key/);
    const [, key = ''] = posthorn.env.ENCRYPTION_KEYS?.split(':') ?? [];
    const logs = posthorn.gateway.output() + dispatcher.output();
    expect(logs).toContain(`secret of ${webhookId} is sealed with key`);
    for (const hidden of [key, 'hush', 'whsec_']) expect(logs).not.toContain(hidden);

    const accepted = await acceptBesides(webhookId);
    respond(200);
    await documents.updateOne({ _id: webhookId }, {
      $set: { sealed: untouched?.sealed },
    } as object);
    expect(await attempts(3)).toEqual(['http_5xx', 'aborted', 'success']);
    for (const id of accepted) {
      await eventually('delivery of the messages accepted meanwhile', async () => {
        const found = await posthorn.api.get(`/api/v1/webhook-messages/${id}`);
        return (found.body.data as { status: string }).status === 'delivered';
      });
    }
  });

  const publicKeys = () =>
    fetch(`${posthorn.baseUrl}/.well-known/webhooks-keys/${posthorn.companyId}`);

  it('stop what a signing key signs when it is tampered with, until it is restored', async () => {
    const body = { url: receiver.url, appId, signatureAlgorithm: 'ed25519' };
    asymmetric = (await posthorn.api.post('/webhooks', body)).body.data as Created;
    const documents = mongo.db.collection<{ sealed: string }>('signingKeys');
    const untouched = await documents.findOne({});
    const sealed = String(untouched?.sealed);
    await documents.updateOne({}, { $set: { sealed: sealed.slice(0, -4) + 'AAAA' } });
    const { messageId, deliveryId } = await posthorn.api.send({ webhookId: asymmetric.id }, {});
    const outcomes = async (): Promise<string[]> => {
      const found = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      const { attempts } = found.body.data as { attempts: { outcome: string }[] };
      return attempts.map(({ outcome }) => outcome);
    };
    await eventually('an attempt', async () => (await outcomes()).includes('aborted'));
    expect(receiver.of(messageId)).toEqual([]);
    expect((await publicKeys()).status).toBe(500);
    await documents.updateOne({}, { $set: { sealed } });
    await eventually('the delivery', async () => (await outcomes()).includes('success'));
    expect(receiver.of(messageId)).toHaveLength(1);
  });

  it('work with the next encryption key alone after a rotation, and so do signing keys', async () => {
    await posthorn.stopServices();
    const next = newEncryptionKey();
    lastKey = next;
    const both = {
      ...posthorn.env,
      ENCRYPTION_KEYS: `${next},${posthorn.env.ENCRYPTION_KEYS ?? ''}`,
    };
    const admin = async (command: string) =>
      JSON.parse(await runProgram(ADMIN, ['secrets', command, '--json'], both)) as object;
    const [currentKeyId = ''] = next.split(':');
    const stored = webhooks.length + 2;
    // And the signing key.
    expect(await admin('rotate')).toEqual({ resealed: stored + 1, remaining: 0 });
    const webhooksByKeyId = { [currentKeyId]: stored };
    const signingKeysByKeyId = { [currentKeyId]: 1 };
    expect(await admin('status')).toEqual({
      currentKeyId,
      webhooksByKeyId,
      signingKeysByKeyId,
    });
    const [event] = await printedAuditEvents(both, 'encryption_keys.rotated');
    expect(event).toMatchObject({ companyId: null, outcome: 'done', target: { id: currentKeyId } });

    const onlyNext = { ENCRYPTION_KEYS: next };
    await Promise.all([
      posthorn.start('gateway', onlyNext),
      posthorn.start('dispatcher', onlyNext),
      posthorn.start('retry'),
    ]);
    await expectSignedDeliveries();
    const { messageId } = await posthorn.api.send({ webhookId: asymmetric.id }, {});
    const got = await eventually('delivery', () => receiver.of(messageId)[0]);
    const known = (await (await publicKeys()).json()) as JwkSet;
    expect(await verifiedBy(known, got)).toHaveLength(1);
  });

  it('are not sent to another host that is written to the database', async () => {
    await posthorn.stopServices();
    const settings = { ENCRYPTION_KEYS: lastKey };
    const thief = await startReceiver();
    const [, { id: webhookId } = { id: '' }, other] = webhooks;
    const documents = mongo.db.collection<{ _id: string }>('webhooks');
    await documents.updateOne({ _id: webhookId }, { $set: { url: thief.url } });
    await Promise.all([
      posthorn.start('gateway', settings),
      posthorn.start('dispatcher', settings),
      posthorn.start('retry', settings),
    ]);
    const body = { webhookId, payload: {} };
    const accepted = dataOf<ShownMessage>(await posthorn.api.post('/webhook-messages', body), 202);
    const deliveryId = String(accepted.deliveries[0]?.id);
    await eventually('an attempt that was not made', async () => {
      const found = await mongo.db.days.deliveries.of(deliveryId).findOne({ _id: deliveryId });
      return found?.attempts.at(-1)?.outcome === 'aborted';
    });
    expect(thief.received).toEqual([]);
    await thief.close();
    const { messageId } = await posthorn.api.send({ webhookId: other?.id ?? '' }, { n: 1 });
    await eventually('the delivery of another webhook', () => receiver.of(messageId).length === 1);
  });
});
