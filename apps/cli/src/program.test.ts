import { describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { startApi } from '../../../test/support/cli/answering-api.ts';
import { runIn, worldOf } from '../../../test/support/cli/printing-world.ts';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { Interrupted } from './failures.ts';
import { createProgram, run } from './program.ts';

interface Visited {
  name: () => string;
  helpInformation: () => string;
  outputHelp: () => void;
  commands: readonly Visited[];
  options: readonly { hidden: boolean; description: string }[];
}

/** Every command with the words that lead to it. */
function commandsOf(
  command: Visited,
  words: string[] = [],
): (Pick<Visited, 'options'> & { words: string[] })[] {
  return [
    { words, options: command.options },
    ...command.commands
      .filter((each) => each.name() !== 'help')
      .flatMap((each) => commandsOf(each, [...words, each.name()])),
  ];
}

const all = commandsOf(createProgram(worldOf()));

describe('the help', () => {
  const path = join(import.meta.dirname, 'commands.txt');

  it('is there for every command of commands.txt (RENEW_COMMANDS=1 writes it), and for each of its options', async () => {
    const names = [];
    for (const { words, options } of all) {
      const { code, out } = await runIn([...words, '--help']);
      const name = ['posthorn', ...words].join(' ');
      expect({ name, code, out }).toMatchObject({ code: 0, out: expect.stringContaining(name) });
      expect(
        options.filter(({ hidden, description }) => !hidden && !/^\S.*\S$/.test(description)),
      ).toEqual([]);
      names.push(name);
    }
    const text = `${names.join('\n')}\n`;
    if (process.env.RENEW_COMMANDS) writeFileSync(path, text);
    expect(text).toBe(readFileSync(path, 'utf8'));
  });
});

const TIME = '2026-01-31T09:30:00.000Z';

/** A command, and what it requests. */
const REQUESTS: [command: string, request: string][] = [
  ['project list --limit 5', 'GET /projects?limit=100&skip=0'],
  ['project get uid:a', 'GET /projects/uid:a'],
  ['project create --name A', 'POST /projects {"name":"A"}'],
  ['project update p1 --name B', 'PUT /projects/p1 {"name":"B"}'],
  ['project update uid:a --name B --upsert', 'PUT /projects/uid:a?upsert=true {"name":"B"}'],
  ['project delete p1 --yes', 'DELETE /projects/p1'],
  ['app create --name A --project uid:p', 'POST /apps {"name":"A","projectId":"uid:p"}'],
  ['app update a1 --null description', 'PUT /apps/a1 {"description":null}'],
  ['app delete a1 --yes', 'DELETE /apps/a1'],
  [
    'webhook create --app a1 --url https://example.com --event-type a --event-type b',
    'POST /webhooks {"url":"https://example.com","appId":"a1","eventTypes":["a","b"]}',
  ],
  ['webhook update w1 --no-disabled', 'PUT /webhooks/w1 {"disabled":false}'],
  ['webhook delete w1 --yes', 'DELETE /webhooks/w1'],
  ['webhook test w1', 'POST /webhooks/w1/test'],
  ['webhook test w1 --event-type a', 'POST /webhooks/w1/test {"eventType":"a"}'],
  [
    'event-type list --project uid:p --group Orders --no-archived',
    'GET /projects/uid:p/event-types?group=Orders&archived=false&limit=100&skip=0',
  ],
  [
    'event-type get a/b --project uid:p --schema-version 2',
    'GET /projects/uid:p/event-types/a%2Fb?version=2',
  ],
  [
    'event-type create --project uid:p --name a --schema {} --deprecated',
    'POST /projects/uid:p/event-types {"name":"a","schema":{},"deprecated":true}',
  ],
  [
    'event-type update a --project uid:p --null group --upsert',
    'PUT /projects/uid:p/event-types/a?upsert=true {"group":null}',
  ],
  ['event-type delete a --project uid:p --yes', 'DELETE /projects/uid:p/event-types/a'],
  ['webhook health w1', 'GET /webhooks/w1/health'],
  [
    'webhook rotate-secret w1 --grace 24h',
    'POST /webhooks/w1/rotate-secret {"graceSeconds":86400}',
  ],
  ['message get m1', 'GET /webhook-messages/m1'],
  ['message list --app a1 --status exhausted', 'GET /webhook-messages?appId=a1&status=exhausted'],
  [
    'message send --app a1 --ordering-key o --payload {}',
    'POST /webhook-messages {"orderingKey":"o","appId":"a1","payload":{}}',
  ],
  ['message send --app a1 --payload {}', 'POST /webhook-messages {"appId":"a1","payload":{}}'],
  ['delivery get d1', 'GET /deliveries/d1'],
  ['delivery resend d1', 'POST /deliveries/d1/resend'],
  ['delivery list --message m1', 'GET /webhook-messages/m1/deliveries'],
  [
    'delivery list --webhook w1 --status exhausted,cancelled',
    'GET /deliveries?webhookId=w1&status=exhausted%2Ccancelled',
  ],
  [
    `delivery list --app a1 --event-type order.paid --reason webhook_disabled --since ${TIME}`,
    `GET /deliveries?appId=a1&eventType=order.paid&reason=webhook_disabled&since=${encodeURIComponent(TIME)}`,
  ],
  ['delivery cancel d1', 'POST /deliveries/d1/cancel'],
  ['delivery list --reason all_attempts', 'GET /deliveries?reason=all_attempts'],
  ['cancellation list --app a1', 'GET /cancellations?appId=a1'],
  ['cancellation status c1', 'GET /cancellations/c1'],
  [
    `webhook cancel-pending w1 --before ${TIME} --yes`,
    `POST /webhooks/w1/cancel-pending {"createdBefore":"${TIME}"}`,
  ],
  ['webhook ordering-keys list w1 --state blocked', 'GET /webhooks/w1/ordering-keys?state=blocked'],
  [
    'webhook ordering-keys skip w1 a --delivery d1 --yes',
    'POST /webhooks/w1/ordering-keys/skip {"orderingKey":"a","deliveryId":"d1"}',
  ],
  [
    `resend start --webhook w1 --since ${TIME}`,
    `POST /webhooks/w1/resend-failed {"since":"${TIME}"}`,
  ],
  [
    `resend estimate --app a1 --since ${TIME}`,
    `GET /apps/a1/resend-failed/estimate?since=${encodeURIComponent(TIME)}`,
  ],
  [
    `replay start --webhook w1 --since ${TIME} --event-type a --event-type b`,
    `POST /webhooks/w1/replay-missing {"since":"${TIME}","eventTypes":["a","b"]}`,
  ],
  [
    `replay estimate --webhook w1 --since ${TIME} --event-type a --event-type b`,
    `GET /webhooks/w1/replay-missing/estimate?since=${encodeURIComponent(TIME)}&eventTypes=a%2Cb`,
  ],
  ['resend status r1', 'GET /resends/r1'],
  ['resend abort r1', 'POST /resends/r1/abort'],
  ['resend list', 'GET /resends'],
  ['api-key list', 'GET /api-keys?limit=100&skip=0'],
  ['api-key create --name A --scope read', 'POST /api-keys {"name":"A","scopes":["read"]}'],
  ['api-key rotate k1', 'POST /api-keys/k1/rotate {}'],
  ['api-key delete k1 --yes', 'DELETE /api-keys/k1'],
  ['signing-key list', 'GET /signing-keys'],
  ['portal revoke l1 --yes', 'DELETE /portal-links/l1'],
  ['overview', 'GET /overview?range=24h'],
  ['find msg_1', 'GET /find?id=msg_1'],
  ['source-ips', 'GET /source-ips'],
  ['whoami', 'GET /me'],
];

describe('a command', () => {
  it.each(REQUESTS)('%s requests %s', async (command, request) => {
    const { url, got, server } = await startApi({ id: 'x', deliveries: [], eventTypes: [] });
    try {
      const { code, err } = await runIn([...command.split(' '), '--json'], { POSTHORN_URL: url });
      expect({ code, err }).toEqual({ code: 0, err: expect.any(String) });
      expect(got).toHaveLength(1);
      expect(got[0]).toBe(request);
    } finally {
      server.close();
    }
  });

  it.each([
    [
      'cancel --event-type a --since TIME',
      'cancel',
      { eventType: 'a', since: TIME },
      'Cancel 1,200 deliveries to 1 webhook?',
    ],
    [
      'resend --app a1 --reason all_attempts --status exhausted',
      'resend',
      { appId: 'a1', reason: 'all_attempts', status: 'exhausted' },
      'Send 1,200 deliveries to 1 webhook again?',
    ],
  ])('delivery %s shows its plan, and needs --yes', async (command, what, filter, question) => {
    const plan = { deliveries: 1_200, webhooks: 1, isComplete: true };
    const { url, got, server } = await startApi({ id: 'x', ...plan });
    const words = ['delivery', ...command.replace('TIME', TIME).split(' '), '--json'];
    const asked = await runIn(words, { POSTHORN_URL: url });
    expect(asked).toMatchObject({ code: 2, err: expect.stringContaining(question) });
    const counted = Object.entries(filter).toSorted().toString();
    expect(got).toHaveLength(1);
    const [path = '', query] = (got[0] ?? '').split('?');
    expect(path).toBe(`GET /deliveries/${what}/estimate`);
    expect([...new URLSearchParams(query)].toSorted().toString()).toBe(counted);
    const done = await runIn([...words, '--yes'], { POSTHORN_URL: url });
    server.close();
    expect(done).toMatchObject({
      code: 0,
      err: `${what}: 1,200 deliveries to 1 webhook\n`,
    });
    expect(got).toHaveLength(3);
    const [, body = ''] = (got[2] ?? '').split(`POST /deliveries/${what} `);
    expect(JSON.parse(body)).toEqual(filter);
  });

  it.each(['delivery cancel', 'delivery cancel d1 --app a1', 'delivery resend'])(
    '%s is refused: one delivery or a filter is needed',
    async (command) => {
      const { url, got, server } = await startApi({});
      const { code } = await runIn([...command.split(' '), '--yes'], { POSTHORN_URL: url });
      server.close();
      expect([code, got]).toEqual([2, []]);
    },
  );

  it('prints the data of the API as one JSON value, whatever it is', async () => {
    const data = { id: 'x', later: { field: [1] }, name: 'a\u001b[31m' };
    const { url, server } = await startApi(data);
    const { out } = await runIn(['project', 'get', 'x', '--json'], { POSTHORN_URL: url });
    const people = await runIn(['project', 'get', 'x'], { POSTHORN_URL: url });
    server.close();
    expect(JSON.parse(out)).toEqual(data);
    // A name must not control a terminal.
    expect(people.out).not.toContain('\u001b');
  });

  it('escapes control characters in JSON, which stays the same value', async () => {
    const data = { id: 'x', name: '\u009b31m\u007f\u202e"\\é' };
    const { url, server } = await startApi(data);
    const { out } = await runIn(['project', 'get', 'x', '--json'], { POSTHORN_URL: url });
    server.close();
    expect(out).toContain('\\u009b31m\\u007f\\u202e');
    expect(out).not.toMatch(/[\u007f-\u009f\u202e]/);
    expect(JSON.parse(out)).toEqual(data);
  });

  it.each(['localhost:8080', 'http://me:hidden@localhost', 'nowhere'])(
    'refuses the address %s, and names where it comes from',
    async (address) => {
      for (const command of ['whoami', 'doctor', 'listen 3000', 'login --key-stdin']) {
        const { code, err } = await runIn(command.split(' '), { POSTHORN_URL: address }, 'phk_1');
        expect({ command, code, err }).toEqual({
          command,
          code: 2,
          err: expect.stringMatching(/^error: The address of the gateway .*must begin with http/),
        });
        expect(err).not.toContain('hidden');
      }
    },
  );

  /** Runs a command against an API that refuses the requests of one path. Ctrl-C comes once messages are listed. */
  async function runRefused(command: string, path: string, status: number, refusal: object) {
    const interruption = new AbortController();
    const server = createServer((request, response) => {
      if (request.url?.startsWith('/api/v1/webhook-messages'))
        interruption.abort(new Interrupted());
      const isRefused = request.url?.startsWith(`/api/v1${path}`) === true;
      if (isRefused) response.writeHead(status);
      response.end(JSON.stringify(isRefused ? { success: false, ...refusal } : { data: [] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const world = { ...worldOf({ POSTHORN_URL: url }), signal: interruption.signal };
    const code = await run(command.split(' '), world);
    server.close();
    return { code, err: world.printed.err };
  }

  it('prints the one problem of a request once', async () => {
    const errors = [{ path: 'url', message: 'must be https' }];
    const refusal = { code: 'invalid_request', message: 'url: must be https', errors };
    expect(await runRefused('whoami', '/me', 400, refusal)).toEqual({
      code: 1,
      err: 'error: url: must be https (400 invalid_request)\n',
    });
  });

  it('that watches an app ends when there is no such app', async () => {
    const refusal = { code: 'not_found', message: 'There is no such app.' };
    const command = 'message tail --app uid:gone';
    const { code, err } = await runRefused(command, '/apps/uid:gone', 404, refusal);
    expect([code, err]).toEqual([1, 'error: There is no such app. (404 not_found)\n']);
  });

  it('that lists objects of the app of the project names the app and the file', async () => {
    const folder = scratchFolder();
    const path = join(folder, '.posthorn/config.toml');
    mkdirSync(join(folder, '.posthorn'));
    writeFileSync(path, 'app = "uid:shop"');
    const { url, got, server } = await startApi({});
    const listed = async (...args: string[]): Promise<string> => {
      const world = { ...worldOf({ POSTHORN_URL: url }), folder };
      expect(await run([...args, '--json'], world)).toBe(0);
      return world.printed.err;
    };
    expect(await listed('message', 'list')).toBe(`of app uid:shop (from ${path})\n`);
    expect(await listed('message', 'list', '--app', 'a1')).toBe('');
    expect(got).toEqual(['shop', 'a1'].map((app) => expect.stringMatching(`appId=.*${app}$`)));
    server.close();
  });

  it('that waits for a message without webhooks ends at once, and names the reason', async () => {
    // As the API describes such a message.
    const message = { id: 'm1', status: 'delivered', delivered: false, deliveries: [] };
    const { url, got, server } = await startApi(message);
    const env = { POSTHORN_URL: url };
    const waited = await runIn(['message', 'wait', 'm1'], env);
    const send = ['message', 'send', '--app', 'a1', '--payload', '{}', '--wait'];
    const sent = await runIn(send, env);
    server.close();
    expect(waited).toEqual({
      code: 5,
      out: 'm1 goes to no webhook\n',
      err: 'error: m1 goes to no webhook\n',
    });
    expect(sent).toMatchObject({ code: 5, err: 'error: m1 goes to no webhook\n' });
    expect(got).toHaveLength(3);
  });

  it.each(['--deliver-at', '--expires-at'])(
    'that is to be repeated refuses a %s that means another time in each run',
    async (option) => {
      const send = ['message', 'send', '--app', 'a1', '--payload', '{}', '--idempotency-key', 'k'];
      const { url, got, server } = await startApi({});
      const env = { POSTHORN_URL: url };
      const relative = await runIn([...send, option, '2h'], env);
      await runIn([...send, option, TIME], env);
      server.close();
      expect(relative.code).toBe(2);
      expect(relative.err).toMatch(/^error: With --idempotency-key, give times such as 20/);
      expect(got).toHaveLength(1);
    },
  );

  it('that reads standard input ends with 130 at Ctrl-C', async () => {
    const interruption = new AbortController();
    const stdin = new Readable({
      read() {
        interruption.abort(new Interrupted());
      },
    });
    const world = { ...worldOf(), stdin, signal: interruption.signal };
    expect(await run(['diff', '-f', '-'], world)).toBe(130);
  });

  it.each(['phk_', 'whsec_'])('that is wrong shows no %s of its arguments', async (prefix) => {
    for (const args of [
      ['login', `x${prefix}abc`],
      ['whoami', `-X${prefix}abc`],
      ['whoami', `--secrt=${prefix}abc`],
      ['whomi', `${prefix}abc`],
      [`${prefix}abc`],
    ]) {
      const { code, err } = await runIn(args);
      expect(code).toBe(2);
      expect(err).not.toContain(`${prefix}abc`);
    }
  });
});

describe('sending lines', () => {
  /** An input that stays open after its first line, such as that of `tail -f`. */
  function openInput(): Readable {
    const input = new Readable({ read: () => undefined });
    input.push('{"n":1}\n');
    return input;
  }

  const SEND = ['message', 'send', '--app', 'a1', '--stdin', '--ndjson'];

  async function startRefusing(status: number) {
    const requested = Promise.withResolvers<undefined>();
    const server = createServer((request, response) => {
      requested.resolve(undefined);
      // 0 is no answer.
      if (status === 0) return;
      request.resume();
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ success: false, message: 'no', code: 'unauthorized' }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { server, requested: requested.promise, POSTHORN_URL: `http://127.0.0.1:${port}` };
  }

  it('ends with 4 when the key is refused, also while the input stays open', async () => {
    const { server, POSTHORN_URL } = await startRefusing(401);
    const world = { ...worldOf({ POSTHORN_URL }), stdin: openInput() };
    expect(await run(SEND, world)).toBe(4);
    expect(world.printed.err).toContain('Stopped at line 1');
    server.close();
  });

  it('ends with 130 at Ctrl-C, and prints its summary once', async () => {
    const { server, requested, POSTHORN_URL } = await startRefusing(0);
    const interruption = new AbortController();
    const { signal } = interruption;
    const world = { ...worldOf({ POSTHORN_URL }), stdin: openInput(), signal };
    const code = run(SEND, world);
    await requested;
    interruption.abort(new Interrupted());
    expect(await code).toBe(130);
    expect(world.printed.out.match(/ sent/g)).toHaveLength(1);
    server.closeAllConnections();
    server.close();
  });

  /** Answers batches, and no other request. */
  async function startBatches() {
    const got: string[][] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        if (!request.url?.endsWith('/webhook-messages/batch')) return;
        const payloads = [...body.matchAll(/"payload":(\{[^}]*\})/g)].map(([, each = '']) => each);
        const keys = [...body.matchAll(/"idempotencyKey":"([^"]*)"/g)].map(([, each = '']) => each);
        got.push(payloads.map((payload, n) => `${keys[n] ?? ''} ${payload}`));
        const results = keys.map((key, index) => {
          return { index, status: 'accepted', messageId: `msg_${key}`, deliveries: 1 };
        });
        response.writeHead(202, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ success: true, message: '', data: { results } }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { server, got, POSTHORN_URL: `http://127.0.0.1:${port}` };
  }

  it('sends them in batches, byte for byte, each with a key, and prints each result', async () => {
    const { server, got, POSTHORN_URL } = await startBatches();
    const lines = '{"n":1.0}\n\n[2]\n{ "n":3e0 }\n';
    const args = [...SEND, '--idempotency-key', 'run', '--json'];
    const { code, out, err } = await runIn(args, { POSTHORN_URL }, lines);
    server.close();
    expect(got).toEqual([['run-1 {"n":1.0}', 'run-4 { "n":3e0 }']]);
    const sent = (data: object): object => {
      return { type: 'sent', data: { ...data, status: 'accepted', deliveries: 1 } };
    };
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      sent({ line: 1, messageId: 'msg_run-1' }),
      { type: 'failed', data: { line: 3, message: 'The line is no JSON object' } },
      sent({ line: 4, messageId: 'msg_run-4' }),
    ]);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('line 3: The line is') });
  });

  it('sends messages of --count in batches too', async () => {
    const { server, got, POSTHORN_URL } = await startBatches();
    const args = ['message', 'send', '--app', 'a1', '--payload', '{"n":1.0}', '--count', '1500'];
    const { code, out } = await runIn(args, { POSTHORN_URL });
    server.close();
    expect([code, out]).toEqual([0, expect.stringMatching(/^1500 sent, in /)]);
    expect(got.map(({ length }) => length)).toEqual([1_000, 500]);
    const [key = ''] = /^.{36}(?=-1 )/.exec(got[0]?.[0] ?? '') ?? [];
    expect(got.flat()).toEqual(
      Array.from({ length: 1_500 }, (_, n) => `${key}-${n + 1} {"n":1.0}`),
    );
  });

  it('ends with 141 when its output is closed before its end', async () => {
    const { server, POSTHORN_URL } = await startBatches();
    const program = join(import.meta.dirname, 'main.ts');
    const env = { ...process.env, NODE_OPTIONS: '', POSTHORN_URL, POSTHORN_API_KEY: 'phk_1' };
    const child = spawn(process.execPath, [program, ...SEND, '--json'], { env, cwd: '/' });
    child.stdout.destroy();
    // The input stays open: only the closed output ends the command.
    child.stdin.write('{"n":1}\n');
    const [code] = (await once(child, 'exit')) as [number];
    child.stdin.destroy();
    server.close();
    expect(code).toBe(141);
  });

  it('names the key with which to go on, and those that failed together at once', async () => {
    const { server, POSTHORN_URL } = await startRefusing(401);
    const args = ['message', 'send', '--app', 'a1', '--payload', '{}', '--count', '1500'];
    const { code, err } = await runIn([...args, '--idempotency-key', 'run'], { POSTHORN_URL });
    server.close();
    expect(code).toBe(4);
    expect(err.match(/^.*unauthorized.*$/gm)).toEqual([
      'messages 1 to 1000: no (401 unauthorized)',
    ]);
    expect(err).toContain('Stopped at message 1000');
    expect(err).toContain('--idempotency-key run');
  });

  it('prints one request with --dry-run, byte for byte, and makes none', async () => {
    const { url, got, server } = await startApi({});
    const lines = '{"n":1.0}\n{"n":2}\n{"n":3}\n';
    const { code, out, err } = await runIn([...SEND, '--dry-run'], { POSTHORN_URL: url }, lines);
    const one = ['message', 'send', '--app', 'a1', '--stdin', '--dry-run', '--json'];
    const pretty = await runIn(one, { POSTHORN_URL: url }, '{\n "n": 1.0, "text": "\u009b"\n}');
    server.close();
    expect({ code, err, got, requests: out.match(/^method: POST$/gm) }).toEqual({
      code: 0,
      err: '',
      got: [],
      requests: ['method: POST'],
    });
    expect(out).toMatch(/^body: \{"messages":\[\{.*"payload":\{"n":1\.0\}\}/m);
    const address = `${url}/api/v1/webhook-messages`;
    expect(pretty.out).toBe(
      `{"method":"POST","url":"${address}","body":{"appId":"a1","payload":{\n "n": 1.0, "text": "\\u009b"\n}}}\n`,
    );
  });
});

it('stores no profile in a dry run of login, and changes none', async () => {
  const folder = scratchFolder();
  const { url, server } = await startApi({ companyId: 'comp_1' });
  const inFolder = async (command: string, stdin = ''): Promise<ReturnType<typeof worldOf>> => {
    const none = { POSTHORN_URL: '', POSTHORN_API_KEY: '' };
    const world = { ...worldOf(none, stdin), folder, homeFolder: folder };
    expect(await run(command.split(' '), world)).toBe(0);
    return world;
  };
  const login = `login --url ${url} --key-stdin --local --profile here`;
  const { printed } = await inFolder(`${login} --dry-run`, 'phk_1');
  expect(printed.err).toContain('Nothing is stored');
  expect(readdirSync(folder)).toEqual([]);
  await inFolder(login, 'phk_1');
  await inFolder('profile delete here --dry-run');
  await inFolder('logout --profile here --dry-run');
  await inFolder('profile use here --dry-run');
  expect((await inFolder('profile list')).printed.out).toMatch(/^ +here/m);
  server.close();
});
