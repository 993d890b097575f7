import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { DATABASE_USERS } from '../../../deploy/setup/mongodb-rights.ts';
import { createChildren, type Children } from '../../../tools/local-stack/processes/children.ts';
import { createResources } from '../../support/api/resources.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { loginOf } from '../../support/process/secured-logins.ts';
import { startSecuredStack, type SecuredStack } from '../../support/stores/secured-stack.ts';

const dir = mkdtempSync(join(tmpdir(), 'posthorn-secured-stack-'));

let children: Children;
let stack: SecuredStack;
let posthorn: Posthorn;
let receiver: Receiver;

beforeAll(async () => {
  children = createChildren(dir);
  stack = await startSecuredStack(dir, children, () => undefined);
  const env = { ...stack.env, ...createNamespace({ ...process.env, ...stack.env }) };
  [posthorn, receiver] = await Promise.all([
    startPosthorn({ ...env, RETRY_DELAYS: '200ms' }),
    startReceiver(),
  ]);
}, 240_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
  await stack.stop();
  await children.stopAll();
  rmSync(dir, { recursive: true, force: true });
});

describe('Posthorn in production, with TLS, a login and its own rights at every store [security]', () => {
  it('delivers a message after a retry', async () => {
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    receiver.answerWith(failing(1));
    const { messageId, deliveryId } = await posthorn.api.send({ webhookId }, { over: 'TLS' });
    await createResources(posthorn.api).deliveryOnce('delivered', deliveryId);
    expect(receiver.of(messageId)).toHaveLength(2);
  });

  it('is refused nothing by Redis, which would only slow it down', async () => {
    await stack.verify();
  });

  it('is administered by a user of its own', async () => {
    const env = loginOf('admin', posthorn.env);
    const created = await runProgram(ADMIN, ['company', 'create', 'Another', '--json'], env);
    expect(JSON.parse(created)).toHaveProperty('apiKey');
  });

  it.each([
    ['Kafka', { KAFKA_SSL: 'false' }],
    ['MongoDB', { MONGODB_URL: 'mongodb://localhost/posthorn', MONGODB_TLS_CA_FILE: '' }],
    ['Redis', { REDIS_URL: 'redis://localhost' }],
  ])('does not start when %s would be reached without TLS', async (name, changed) => {
    const start = posthorn.start('gateway', changed);
    await expect(start).rejects.toThrow(new RegExp(`would be reached without TLS:\\s+${name}: `));
  });

  it('does not send its password to a MongoDB whose certificate it does not trust', async () => {
    const start = posthorn.start('retry', { MONGODB_URL: withCa(posthorn.env.MONGODB_URL) });
    await expect(start).rejects.toThrow(/MongoDB cannot be used at localhost/);
    await expect(start).rejects.not.toThrow(/hush-mongodb/);
  });
});

/** With the CA of Redis, which has signed another certificate. */
function withCa(text: string): string {
  const url = new URL(text);
  url.searchParams.set('tlsCAFile', stack.env.REDIS_TLS_CA_FILE ?? '');
  return url.href;
}

describe('MongoDB with authentication [security]', () => {
  const databaseOf = (text: string): string => new URL(text).pathname;

  /** Runs a command as a user, past the listener with TLS. */
  async function runAs(user: string, command: Record<string, unknown>): Promise<unknown> {
    const url = new URL(stack.plaintextMongodbUrl);
    if (user === '') [url.username, url.password] = ['', ''];
    else url.username = user;
    url.pathname = databaseOf(posthorn.env.MONGODB_URL);
    const mongo = await connectMongo(url.href, 'posthorn-test');
    try {
      return await mongo.db.command(command);
    } finally {
      await mongo.close();
    }
  }

  const REFUSED = { code: 13 };

  it('refuses a command without a login', async () => {
    await expect(runAs('', { find: 'messages' })).rejects.toThrow('requires authentication');
  });

  it('refuses each process what it does not need', async () => {
    const insert = (collection: string) => ({ insert: collection, documents: [{ _id: 'x' }] });
    const remove = { delete: 'messages', deletes: [{ q: {}, limit: 0 }] };
    const refused: [string, Record<string, unknown>][] = [
      ['gateway', insert('companies')],
      ['dispatcher', insert('webhooks')],
      ['dispatcher', insert('apiKeys')],
      ['dispatcher', remove],
      ['retry', insert('apiKeys')],
      ['retry', insert('messages')],
      ['admin', insert('messages')],
      ['setup', { find: 'webhooks' }],
      ...DATABASE_USERS.map((user): [string, Record<string, unknown>] => [
        user,
        { drop: 'messages' },
      ]),
      ...DATABASE_USERS.map((user): [string, Record<string, unknown>] => [user, { usersInfo: 1 }]),
    ];
    for (const [user, command] of refused) {
      await expect(runAs(user, command)).rejects.toMatchObject(REFUSED);
    }
  });
});
