import { spawn } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import { verify } from '@posthorn/verify';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import {
  COMMAND_LINE,
  type CommandPlace,
  type RunningCommand,
  startCommand,
  untilEvent,
} from '../../support/process/command-line.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, type Receiver, startReceiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

let services: OwnCompany;
let api: Posthorn;
let receiver: Receiver;
const running: RunningCommand[] = [];

beforeAll(async () => {
  services = await joinShared('retries');
  const { baseUrl, apiKey } = services;
  api = new Posthorn({ baseUrl, apiKey });
}, 120_000);

afterEach(async () => {
  for (const { signal } of running) signal('SIGKILL');
  await Promise.all(running.splice(0).map(({ ended }) => ended));
  await receiver.close();
});

afterAll(() => services.stop());

/** Starts `posthorn listen` before a receiver of its own, and waits until it is ready. */
async function listen(...args: string[]): Promise<RunningCommand> {
  receiver = await startReceiver();
  return start('listen', receiver.url, ...args);
}

async function start(...args: string[]): Promise<RunningCommand> {
  const command = startCommand(['--json', ...args], services);
  running.push(command);
  await untilEvent(command, { type: 'ready' });
  return command;
}

const send = (payload: object, eventType: string | null = null) =>
  api.messages.send({ appId: 'uid:cli-listen', eventType, payload });

async function webhooks(): Promise<string[]> {
  const found = await Array.fromAsync(api.webhooks.list({ secrets: false }));
  return found.map(({ id }) => id);
}

describe('posthorn listen', () => {
  it('forwards a delivery as it is, and prints its type, status and duration', async () => {
    const command = await listen('--print-secret', '--header', 'X-Tenant: blue');
    const [ready] = command.events();
    const { id } = await send({ n: 1 }, 'order.paid');
    const printed = await untilEvent(command, { type: 'delivery', messageId: id });
    expect(printed).toMatchObject({ eventType: 'order.paid', status: 200, error: null });
    const [got] = receiver.of(id);
    expect(got).toMatchObject({ method: 'POST', path: '/hook' });
    expect(got?.headers).toMatchObject({ host: new URL(receiver.url).host, 'x-tenant': 'blue' });
    const { headers, body = '' } = got ?? {};
    const secrets = [String(ready?.secret)];
    const event = await verify({ body, headers: headers as Record<string, string>, secrets });
    expect([event.id, event.payload]).toEqual([id, { n: 1 }]);
    expect((await api.messages.waitUntilFinal(id)).status).toBe('delivered');
  });

  it('returns the status of the target, and forwards the retry', async () => {
    const command = await listen();
    receiver.answerWith(failing(2, 503));
    const { id } = await send({ n: 1 });
    expect((await api.messages.waitUntilFinal(id)).status).toBe('delivered');
    const { items } = await api.messages.listDeliveries(id);
    const attempts = items[0]?.attempts.map(({ statusCode, response }) => [statusCode, response]);
    expect(attempts).toEqual([
      [503, 'not now'],
      [503, 'not now'],
      [200, 'ok'],
    ]);
    await untilEvent(command, { messageId: id, status: 200 });
    const statuses = command.events().map(({ status }) => status);
    expect(statuses).toEqual([undefined, 503, 503, 200]);
  });

  it('does not forward what Posthorn has not signed', async () => {
    const command = await listen();
    const webhook = await api.webhooks.get(String(command.events()[0]?.webhookId));
    const forged = await fetch(webhook.url, {
      method: 'POST',
      body: '{"n":1}',
      headers: {
        'webhook-id': 'msg_forged',
        'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
        'webhook-signature': 'v1,MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
      },
    });
    expect(forged.status).toBe(401);
    await untilEvent(command, { type: 'refused', reason: 'no_match' });
    expect(receiver.received).toEqual([]);
    expect(command.stdout() + command.stderr()).not.toContain('whsec_');
  });

  it('reports a target that is down once, and answers 502 until it is back', async () => {
    receiver = await startReceiver();
    const [port = 0] = await freePorts(1);
    const command = await start('listen', String(port));
    const { id } = await send({ n: 1 });
    const isRetried = (): boolean =>
      command.events().filter(({ status }) => status === 502).length > 1;
    await eventually('two attempts', isRetried);
    expect(command.stderr().split('does not answer')).toHaveLength(2);
    const { items } = await api.messages.listDeliveries(id);
    expect(items[0]?.attempts[0]?.statusCode).toBe(502);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'deletes its webhook after %s, and ends with 0',
    async (signal) => {
      const command = await listen();
      const webhookId = String(command.events()[0]?.webhookId);
      expect(await webhooks()).toEqual([webhookId]);
      command.signal(signal);
      expect(await command.ended).toEqual({ code: 0, signal: null });
      expect(await webhooks()).toEqual([]);
    },
  );

  it.each([
    ['a terminal', 'import pty, sys; pty.spawn(sys.argv[1:])', {}],
    // It does not pass the signal on.
    ['npx', 'import subprocess, sys; subprocess.run(sys.argv[1:])', { npm_command: 'exec' }],
  ])('deletes its webhook when %s has ended', async (_name, program, env) => {
    receiver = await startReceiver();
    const { baseUrl, apiKey } = services;
    const args = [process.execPath, COMMAND_LINE, '--json', 'listen', receiver.url];
    const parent = spawn('python3', ['-c', program, ...args], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        POSTHORN_URL: baseUrl,
        POSTHORN_API_KEY: apiKey,
        npm_command: '',
        ...env,
      },
      stdio: 'ignore',
    });
    await eventually('a webhook', async () => (await webhooks()).length === 1);
    parent.kill('SIGTERM');
    await eventually('its deletion', async () => (await webhooks()).length === 0);
  });

  it('resends the last event and sends a sample at the press of a key', async () => {
    receiver = await startReceiver();
    const { baseUrl, apiKey } = services;
    const args = [process.execPath, COMMAND_LINE, 'listen', receiver.url];
    const terminal = spawn('python3', ['-c', 'import pty, sys; pty.spawn(sys.argv[1:])', ...args], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        POSTHORN_URL: baseUrl,
        POSTHORN_API_KEY: apiKey,
      },
    });
    let shown = '';
    terminal.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()));
    await eventually('the keys', () => shown.includes('Press r'));
    terminal.stdin.write('s');
    await eventually('the sample', () => receiver.received.length === 1);
    receiver.answerWith(failing(1, 503));
    const { id } = await send({ n: 1 });
    await eventually('its failure', () => shown.includes('503'));
    terminal.stdin.write('r');
    await eventually('its resend', async () => {
      const { items } = await api.messages.listDeliveries(id);
      return items[0]?.attempts.some(({ resend, outcome }) => resend && outcome === 'success');
    });
    terminal.stdin.write('\u0003');
    await eventually('the end', () => terminal.exitCode !== null);
    expect(await webhooks()).toEqual([]);
  });

  it('leaves the webhook of another one that runs, and deletes that of a killed one', async () => {
    const first = await listen();
    const second = await start('listen', '--no-forward');
    const ids = [first, second].map((command) => String(command.events()[0]?.webhookId));
    expect((await webhooks()).toSorted()).toEqual(ids.toSorted());
    const { id } = await send({ n: 1 });
    await untilEvent(first, { messageId: id, status: 200 });
    await untilEvent(second, { messageId: id, status: 204 });

    first.signal('SIGKILL');
    await first.ended;
    expect(await webhooks()).toHaveLength(2);
    const third = await start('listen', '--no-forward');
    const left = [ids[1], String(third.events()[0]?.webhookId)];
    expect((await webhooks()).toSorted()).toEqual(left.toSorted());
  });

  it('passes the event types on, and prints many deliveries in the order of arrival', async () => {
    const command = await listen('--event-types', 'a.b,c.d');
    const webhookId = String(command.events()[0]?.webhookId);
    expect((await api.webhooks.get(webhookId)).eventTypes).toEqual(['a.b', 'c.d']);
    const answers: (() => void)[] = [];
    receiver.answerWith((response) => answers.push(() => response.writeHead(200).end()));
    const sent: string[] = [];
    for (let n = 1; n <= 10; n += 1) {
      const { id } = await send({ n }, 'a.b');
      sent.push(id);
      // Two that are under way together may arrive in either order.
      await eventually(`request ${n}`, () => answers.length === n);
    }
    for (const answer of answers.toReversed()) answer();
    const printed = (): unknown[] =>
      command.events().flatMap(({ messageId }) => (messageId === undefined ? [] : [messageId]));
    await eventually('ten deliveries', () => printed().length === 10);
    expect(printed()).toEqual(sent);
  });
});

describe('posthorn message tail', () => {
  it('prints each new message once, then its final status', async () => {
    await listen();
    const tail = await start('message', 'tail');
    let answer: () => void = () => undefined;
    receiver.answerWith((response) => {
      answer = () => response.writeHead(200).end();
    });
    const { id } = await send({ n: 1 }, 'order.paid');
    // It begins with the second in which it was started: messages of the story before may be among those.
    const ofMessage = () =>
      tail.events().filter((event) => event.type === 'message' && event.id === id);
    await eventually('the message', () => ofMessage().length > 0);
    await eventually('the request', () => receiver.of(id).length > 0);
    answer();
    await untilEvent(tail, { type: 'status', id, status: 'delivered' });
    const [printed, ...repeated] = ofMessage();
    const sent = { id, eventType: 'order.paid', status: 'pending', payload: '{"n":1}' };
    expect(printed).toMatchObject(sent);
    expect(repeated).toEqual([]);
    const finals = tail.events().filter((event) => event.type === 'status' && event.id === id);
    expect(finals).toHaveLength(1);
    await untilEvent(tail, { type: 'attempt', messageId: id, status: 'delivered' });
    tail.signal('SIGINT');
    expect(await tail.ended).toEqual({ code: 0, signal: null });
  });
});

it('posthorn message tail prints attempts with their codes, of the chosen type', async () => {
  const command = await listen();
  const webhookId = String(command.events()[0]?.webhookId);
  const args = ['--webhook', webhookId, '--event-type', 'order.failed'];
  const tail = await start('message', 'tail', ...args);
  const other = await send({ n: 1 }, 'order.paid');
  await api.messages.waitUntilFinal(other.id);
  receiver.answerWith(failing(1, 503));
  const { id } = await send({ n: 2 }, 'order.failed');
  await untilEvent(tail, { type: 'status', id, status: 'delivered' });
  const attempts = (): unknown[] =>
    tail
      .events()
      .filter(({ type }) => type === 'attempt')
      .map(({ attempt }) => attempt);
  await eventually('both attempts', () => attempts().length === 2);
  expect(attempts()).toMatchObject([
    { number: 1, outcome: 'http_5xx', statusCode: 503 },
    { number: 2, outcome: 'success', statusCode: 200 },
  ]);
  const messages = tail.events().filter(({ type }) => type === 'message');
  expect(messages).toEqual([expect.objectContaining({ id })]);
});

interface Doctor {
  ok: boolean;
  checks: { name: string; status: string; message: string }[];
}

describe('posthorn doctor', () => {
  const examine = async (place: CommandPlace, ...args: string[]) => {
    const command = startCommand(['--json', 'doctor', ...args], place);
    running.push(command);
    const { code } = await command.ended;
    return { code, ...(JSON.parse(command.stdout()) as Doctor) };
  };

  it('checks the way to the API and an endpoint, to which it sends a test message', async () => {
    const command = await listen();
    const { code, ok, checks } = await examine(
      services,
      '--webhook',
      String(command.events()[0]?.webhookId),
    );
    expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'address ok',
      'tls ok',
      'key ok',
      'scopes ok',
      'clock ok',
      'version ok',
      'webhook ok',
      'endpoint ok',
      'attempts ok',
      'test ok',
    ]);
    expect([code, ok, receiver.received.length]).toEqual([0, true, 1]);
  });

  it('ends with 5 for a key that is not valid, and for an endpoint that refuses', async () => {
    const command = await listen();
    const wrongKey = await examine({ ...services, apiKey: 'phk_wrong' });
    expect([wrongKey.code, wrongKey.ok, wrongKey.checks.at(-1)]).toEqual([
      5,
      false,
      expect.objectContaining({ name: 'key', status: 'fail' }),
    ]);
    receiver.answerWith(failing(1, 404));
    const id = String(command.events()[0]?.webhookId);
    const refusing = await examine(services, '--webhook', id);
    expect([refusing.code, refusing.checks.at(-1)]).toEqual([
      5,
      expect.objectContaining({ name: 'test', status: 'fail' }),
    ]);
  });
});
