import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { createChildren, type Children } from '../../../tools/local-stack/processes/children.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { readDeliveries, untilDelivered, type Sent } from '../../support/process/traffic.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import {
  startBackedUpMongodb,
  type BackedUpMongodb,
} from '../../support/stores/backed-up-mongodb.ts';
import { eventually } from '../../support/time/eventually.ts';

const WITHIN_MS = 60_000;
const dir = mkdtempSync(join(tmpdir(), 'posthorn-restore-'));

/** The drill of docs/backup-and-restore.md: only the backup of MongoDB and the encryption keys are left. */
describe('A Posthorn that is restored from its backup, with an empty Kafka and an empty Redis', () => {
  let children: Children;
  let mongodb: BackedUpMongodb;
  let posthorn: Posthorn;
  let receiver: Receiver;
  let webhook: { id: string; secret: string };
  /** Delivered; failed once, its retry not made; accepted, not attempted: all in the backup. The last one is not. */
  let delivered: Sent, failed: Sent, untried: Sent, tooLate: Sent;
  /** What the API showed when the backup was taken. */
  let before: unknown;

  beforeAll(async () => {
    children = createChildren(dir);
    [mongodb, receiver] = await Promise.all([
      startBackedUpMongodb({ dir, database: 'posthorn', children, log: () => undefined }),
      startReceiver(),
    ]);
    // The retry would be due at once, but no retry service makes it before the loss.
    posthorn = await startPosthorn({ MONGODB_URL: mongodb.url, RETRY_DELAYS: '1s' });
    webhook = await newWebhook();
    await fillAndBackUp();
    await loseEverything();
    await restore();
  }, 300_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
    await children.stopAll();
    rmSync(dir, { recursive: true, force: true });
  });

  async function newWebhook(): Promise<{ id: string; secret: string }> {
    const { appId } = await posthorn.api.createTarget(receiver.url);
    const { body } = await posthorn.api.post('/webhooks', { url: receiver.url, appId });
    return body.data as { id: string; secret: string };
  }

  const send = (order: number): Promise<Sent> =>
    posthorn.api.send({ webhookId: webhook.id }, { order });

  async function shown(): Promise<unknown> {
    const paths = [`/webhooks/${webhook.id}`, `/webhook-messages/${delivered.messageId}`];
    const answers = await Promise.all(paths.map((path) => posthorn.api.get(path)));
    return answers.map(({ status, body }) => ({ status, data: body.data as unknown }));
  }

  async function fillAndBackUp(): Promise<void> {
    delivered = await send(1);
    await untilDelivered(posthorn.api, [delivered]);
    await posthorn.retry.stop();
    receiver.answerWith(failing(1));
    failed = await send(2);
    await eventually('the failed attempt', async () => {
      const [delivery] = await readDeliveries(posthorn.api, [failed.deliveryId]);
      return delivery?.attemptCount === 1;
    });
    await posthorn.dispatcher.stop();
    receiver.answerWith(failing(0));
    untried = await send(3);
    before = await shown();
    await mongodb.backUp();
    tooLate = await send(4);
  }

  async function loseEverything(): Promise<void> {
    await posthorn.gateway.stop();
    await mongodb.destroy();
  }

  /** Kafka and Redis are empty: other prefixes. The keys are the same as before. */
  async function restore(): Promise<void> {
    await mongodb.restore();
    const { TOPIC_PREFIX, REDIS_PREFIX } = createNamespace();
    const empty = { TOPIC_PREFIX, REDIS_PREFIX, RECONCILE_AFTER: '2s' };
    const env = { ...posthorn.env, ...empty };
    await runProgram('deploy/setup/create-topics.ts', [], env);
    await runProgram('deploy/setup/create-indexes.ts', [], env);
    await Promise.all(
      (['gateway', 'dispatcher', 'retry'] as const).map((name) => posthorn.start(name, empty)),
    );
  }

  it('shows what it showed when the backup was taken, secrets too', async () => {
    expect(await shown()).toEqual(before);
    expect(JSON.stringify(before)).toContain(webhook.secret);
  });

  it('delivers what was pending, with the same signature as before, and makes no attempt twice', async () => {
    await untilDelivered(posthorn.api, [failed, untried], WITHIN_MS);
    expect([failed, untried].map(({ messageId }) => receiver.of(messageId).length)).toEqual([2, 1]);
    const [request] = receiver.of(untried.messageId);
    const headers = request?.headers as Record<string, string>;
    expect(new Webhook(webhook.secret).verify(request?.body.toString() ?? '', headers)).toEqual({
      order: 3,
    });
    // A delivered one is not sent again.
    expect(receiver.of(delivered.messageId)).toHaveLength(1);
  });

  it('has lost what was accepted after the backup', async () => {
    expect((await posthorn.api.get(`/webhook-messages/${tooLate.messageId}`)).status).toBe(404);
    expect(receiver.of(tooLate.messageId)).toEqual([]);
  });

  it('accepts and delivers new messages', async () => {
    await untilDelivered(posthorn.api, [await send(5)], WITHIN_MS);
  });

  it('opens every sealed value', async () => {
    const status = await runProgram(ADMIN, ['secrets', 'status', '--json'], posthorn.env);
    const { currentKeyId, webhooksByKeyId } = JSON.parse(status) as {
      currentKeyId: string;
      webhooksByKeyId: Record<string, number>;
    };
    expect(Object.keys(webhooksByKeyId)).toEqual([currentKeyId]);
  });
});
