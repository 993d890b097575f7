import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import { type CommandPlace, startCommand } from '../../support/process/command-line.ts';
import { scratchFolder } from '../../support/process/scratch-folder.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { failing, startReceiver } from '../../support/receivers/receiver.ts';

let services: OwnCompany;
let api: Posthorn;
const receiver = useReceiver();

beforeAll(async () => {
  services = await joinShared('contract');
  const { baseUrl, apiKey } = services;
  api = new Posthorn({ baseUrl, apiKey });
}, 120_000);

afterAll(async () => {
  await services.stop();
});

interface Result {
  code: number | null;
  stdout: string;
  stderr: string;
}

async function posthorn(
  args: readonly string[],
  place: Partial<CommandPlace> = {},
): Promise<Result> {
  const command = startCommand(args, { ...services, env: {}, ...place });
  const { code } = await command.ended;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

/** Returns the JSON that a command prints. */
async function json(args: readonly string[], stdin = ''): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await posthorn([...args, '--json'], { stdin });
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
  return JSON.parse(stdout) as Record<string, unknown>;
}

interface SentEvent {
  type: string;
  data: Record<string, unknown>;
}

const ndjson = (text: string): SentEvent[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SentEvent);

const event = (type: string, data: object): unknown => ({
  type,
  data: expect.objectContaining(data),
});

/** A project, an app and a webhook to the receiver, with this uid. */
async function createOwn(uid: string): Promise<void> {
  await json(['project', 'create', '--name', uid, '--uid', uid]);
  await json(['app', 'create', '--name', uid, '--project', `uid:${uid}`, '--uid', uid]);
  await json(['webhook', 'create', '--app', `uid:${uid}`, '--url', receiver.url, '--uid', uid]);
}

describe('a login', () => {
  it('reads the key from standard input, and is what later commands use', async () => {
    const env = {
      XDG_CONFIG_HOME: scratchFolder(),
      POSTHORN_URL: '',
      POSTHORN_API_KEY: '',
    };
    const { baseUrl, apiKey } = services;
    const nobody = await posthorn(['whoami'], { env });
    expect(nobody).toMatchObject({ code: 2, stderr: expect.stringContaining('posthorn login') });
    const login = ['login', '--url', baseUrl, '--key-stdin'];
    const wrong = await posthorn(login, { env, stdin: 'phk_wrong' });
    expect(wrong).toMatchObject({ code: 4 });
    expect(await posthorn(login, { env, stdin: `${apiKey}\n` })).toMatchObject({ code: 0 });
    const me = await posthorn(['whoami', '--json'], { env });
    expect(JSON.parse(me.stdout)).toEqual(await api.me());
    const listed = await posthorn(['profile', 'list'], { env });
    expect(listed.stdout).toContain(baseUrl);
    expect(`${listed.stdout}${wrong.stderr}`).not.toContain('phk_');
    const local = [...login, '--local', '--profile', 'here'];
    const folder = scratchFolder();
    expect(await posthorn(local, { env, folder, stdin: apiKey })).toMatchObject({ code: 0 });
    const here = await posthorn(['whoami'], { env, folder });
    expect(here.stdout).toMatch(/^credentials +profile here$/m);
    const elsewhere = await posthorn(['whoami'], { env });
    expect(elsewhere.stdout).toMatch(/^credentials +profile default$/m);
    expect(await posthorn(['logout'], { env })).toMatchObject({ code: 0 });
    expect(await posthorn(['whoami'], { env })).toMatchObject({ code: 2 });
  });
});

describe('objects', () => {
  it('are created, shown, changed and deleted, as the API has them', async () => {
    await createOwn('first');
    expect(await json(['webhook', 'get', 'uid:first', '--show-secrets'])).toEqual(
      await api.webhooks.get('uid:first'),
    );
    const shown = await posthorn(['webhook', 'get', 'uid:first', '--json']);
    expect(shown.stdout).not.toContain('whsec_');
    await json(['webhook', 'update', 'uid:first', '--event-type', 'order.paid', '--disabled']);
    expect(await api.webhooks.get('uid:first')).toMatchObject({
      eventTypes: ['order.paid'],
      disabled: true,
    });
    const table = await posthorn(['webhook', 'list']);
    expect(table.stdout).toContain(receiver.url);
    // Nobody can be asked here.
    expect(await posthorn(['app', 'delete', 'uid:first'])).toMatchObject({ code: 2 });
    expect(await posthorn(['app', 'delete', 'uid:first', '--yes'])).toMatchObject({ code: 0 });
    expect(await posthorn(['app', 'get', 'uid:first'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('404 not_found'),
    });
    expect(await posthorn(['project', 'delete', 'uid:first', '--yes'])).toMatchObject({ code: 0 });
  });

  it('have secrets from the environment, never from an argument', async () => {
    await createOwn('secret');
    const secret = `whsec_${Buffer.alloc(32, 'a').toString('base64')}`;
    const env = { OWN_SECRET: secret };
    const create = ['webhook', 'create', '--app', 'uid:secret', '--url', receiver.url];
    const refused = await posthorn([...create, '--secret', secret]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).not.toContain(secret);
    const made = await posthorn([...create, '--uid', 'own', '--secret-env', 'OWN_SECRET'], { env });
    expect(made.code).toBe(0);
    expect((await api.webhooks.get('uid:own')).secret).toBe(secret);
  });

  it('are only printed as a request by a dry run', async () => {
    const { stdout, code } = await posthorn(['project', 'create', '--name', 'Dry', '--dry-run']);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining('body: {"name":"Dry"}'),
    });
    const projects = await Array.fromAsync(api.projects.list());
    expect(projects.map(({ name }) => name)).not.toContain('Dry');
  });

  it('have keys that are limited, and say so with 4', async () => {
    const key = await json(['api-key', 'create', '--name', 'Reader', '--scope', 'read']);
    const reader = { apiKey: String(key.key) };
    expect(await posthorn(['project', 'list'], reader)).toMatchObject({ code: 0 });
    const refused = await posthorn(['project', 'create', '--name', 'No'], reader);
    expect(refused).toMatchObject({ code: 4 });
    const id = String(key.id);
    expect(await posthorn(['api-key', 'delete', id, '--yes'])).toMatchObject({ code: 0 });
    expect(await posthorn(['project', 'list'], reader)).toMatchObject({ code: 4 });
  });

  it('cannot be read from an API that is not there, which ends with 3', async () => {
    const nowhere = { baseUrl: 'http://127.0.0.1:1' };
    expect(await posthorn(['project', 'list'], nowhere)).toMatchObject({ code: 3 });
  });
});

describe('a message', () => {
  beforeAll(() => createOwn('sent'));

  it('is delivered byte for byte, waited for and shown', async () => {
    const payload = '{"n": 1.0, "text": "ü"}';
    const sent = await json([
      ...['message', 'send', '--app', 'uid:sent', '--payload', payload, '--wait'],
    ]);
    expect(sent).toMatchObject({ status: 'delivered', payload });
    expect(receiver.received.at(-1)?.body.toString()).toBe(payload);
    const id = String(sent.id);
    expect(await json(['message', 'get', id])).toEqual(await api.messages.get(id));
    expect(await posthorn(['message', 'wait', id])).toMatchObject({ code: 0 });
    const listed = await posthorn(['delivery', 'list', '--message', id]);
    expect(listed.stdout).toContain('delivered');
    const ofWebhook = await json(['delivery', 'list', '--webhook', 'uid:sent']);
    expect(ofWebhook).toEqual([expect.objectContaining({ messageId: id, status: 'delivered' })]);
  });

  it('that is not delivered ends the wait with 5', async () => {
    const failed = await startReceiver();
    failed.answerWith(failing(1));
    try {
      const create = ['webhook', 'create', '--app', 'uid:sent', '--url', failed.url];
      const { id } = await json(create);
      const send = ['message', 'send', '--webhook', String(id), '--payload', '{}', '--wait'];
      expect(await posthorn([...send, '--timeout', '2s'])).toMatchObject({ code: 5 });
    } finally {
      await failed.close();
    }
  });

  it('a message to an app without webhooks ends the wait at once', async () => {
    await json(['project', 'create', '--name', 'Empty', '--uid', 'empty']);
    await json(['app', 'create', '--name', 'Empty', '--project', 'uid:empty', '--uid', 'empty']);
    const { id } = await json(['message', 'send', '--app', 'uid:empty', '--payload', '{}']);
    const { code, stderr } = await posthorn(['message', 'wait', String(id)]);
    expect({ code, stderr }).toEqual({
      code: 5,
      stderr: `error: ${String(id)} goes to no webhook\n`,
    });
  });

  it('comes from each line, in order; a line that is wrong is named', async () => {
    const lines = ['{"line": 1}', 'no json', '', '{"line": 4.0}'].join('\n');
    const args = ['message', 'send', '--app', 'uid:sent', '--stdin', '--ndjson', '--json'];
    const { code, stdout, stderr } = await posthorn(args, { stdin: lines });
    expect(code).toBe(1);
    const events = ndjson(stdout);
    expect(events).toEqual([
      event('sent', { line: 1, status: 'accepted', deliveries: expect.any(Number) }),
      event('failed', { line: 2 }),
      event('sent', { line: 4, status: 'accepted', deliveries: expect.any(Number) }),
    ]);
    expect(stderr).toContain('line 2: ');
    const ids = events.flatMap(({ data }) => data.messageId ?? []).map(String);
    expect(ids).toEqual(ids.toSorted());
    const sent = await Promise.all(ids.map((id) => api.messages.get(id)));
    expect(sent.map(({ payload }) => payload)).toEqual(['{"line": 1}', '{"line": 4.0}']);
  });

  it('that the API refuses is named, and keeps no other from being sent and waited for', async () => {
    const deep = `{"a":${'['.repeat(64)}${']'.repeat(64)}}`;
    const lines = ['{"line": 1}', deep, `{"text":"${'x'.repeat(262_144)}"}`, '{"line": 4}'].join(
      '\n',
    );
    await createOwn('refusing');
    const args = [
      'message',
      'send',
      '--app',
      'uid:refusing',
      '--stdin',
      '--ndjson',
      '--json',
      '--wait',
    ];
    const { code, stdout } = await posthorn(args, { stdin: lines });
    expect(code).toBe(1);
    const payloadOf = (payload: string): unknown => expect.objectContaining({ payload });
    expect(ndjson(stdout)).toEqual([
      event('sent', { line: 1, status: 'delivered', message: payloadOf('{"line": 1}') }),
      event('failed', { line: 2, code: 'invalid_request' }),
      event('failed', { line: 3, code: 'invalid_request' }),
      event('sent', { line: 4, status: 'delivered', message: payloadOf('{"line": 4}') }),
    ]);
  });

  it('is sent once by a repeat with the same key', async () => {
    const args = ['message', 'send', '--app', 'uid:sent', '--payload', '{"once":true}'];
    const keyed = [...args, '--idempotency-key', 'cli-once', '--count', '3', '--json'];
    const [first, second] = [await posthorn(keyed), await posthorn(keyed)];
    const idsOf = ({ stdout }: Result): unknown[] =>
      ndjson(stdout).map(({ data }) => data.messageId);
    expect(new Set(idsOf(first)).size).toBe(3);
    expect(idsOf(second)).toEqual(idsOf(first));
    expect(ndjson(second.stdout)).toEqual(Array(3).fill(event('sent', { status: 'replayed' })));
  });

  it('has fields of its own in a line of messages', async () => {
    const line = '{"appId":"uid:sent","eventType":"order.paid","tags":["a"],"payload":{"n":1.0}}';
    const args = ['message', 'send', '--stdin', '--messages', '--json'];
    const { code, stdout } = await posthorn(args, { stdin: line });
    expect(code).toBe(0);
    const [sent] = ndjson(stdout);
    expect(await api.messages.get(String(sent?.data.messageId))).toMatchObject({
      eventType: 'order.paid',
      payload: '{"n":1.0}',
      tags: ['a'],
    });
  });
});
