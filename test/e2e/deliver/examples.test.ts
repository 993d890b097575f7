import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { runProgram } from '../../../tools/check-ops/programs/run-program.ts';
import { cachedFolder } from '../../../tools/local-stack/machine/cache.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { scratchFolder } from '../../support/process/scratch-folder.ts';
import { untilDelivered } from '../../support/process/traffic.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { eventually } from '../../support/time/eventually.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');

const { posthorn } = useCompany('retries');
const running: ChildProcess[] = [];

beforeAll(async () => {
  // Python's packages are downloaded once per user.
  await pythonPackages();
}, 600_000);

afterEach(async () => {
  for (const child of running.splice(0)) {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await ended;
  }
});

/** Starts an example; `output` returns what it has printed. */
function start(command: string, args: readonly string[], env: Record<string, string>) {
  const child = spawn(command, args, {
    cwd: EXAMPLES,
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  running.push(child);
  return { output: () => output, hasEnded: () => child.exitCode !== null };
}

type Started = ReturnType<typeof start>;

/** Returns the folder with what requirements.txt names. Python 3.10 or later with pip is needed, and no test is skipped without it. */
async function pythonPackages(): Promise<string> {
  const file = join(EXAMPLES, 'fastapi/requirements.txt');
  const version = (await runProgram('python3', ['--version'])).trim().replace(' ', '-');
  const hash = createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12);
  return cachedFolder(`fastapi-${hash}-${version}`, async (folder) => {
    const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action', 'ignore'];
    // A virtual environment would name its own path in its programs, and this folder is renamed when it is complete.
    const args = ['-m', 'pip', 'install', ...quiet, '--no-warn-conflicts', '--target', folder];
    await runProgram('python3', [...args, '-r', file], { timeoutMs: 300_000 });
  });
}

const RECEIVERS: Record<string, (secret: string, port: number) => Promise<Started>> = {
  express: (WEBHOOK_SECRET, port) => {
    const env = { WEBHOOK_SECRET, PORT: String(port) };
    return Promise.resolve(start(process.execPath, ['express/receiver.mjs'], env));
  },
  fastapi: async (WEBHOOK_SECRET, port) => {
    const server = [
      '-m',
      'uvicorn',
      '--app-dir',
      'fastapi',
      'receiver:app',
      '--port',
      String(port),
    ];
    return start('python3', server, { WEBHOOK_SECRET, PYTHONPATH: await pythonPackages() });
  },
};

async function untilListening(url: string, { output, hasEnded }: Started): Promise<void> {
  await eventually(`an answer of ${url}`, async () => {
    if (hasEnded()) throw new Error(`The example has ended: ${output()}`);
    return fetch(url, { method: 'POST', body: '{}' }).then(
      ({ status }) => status === 401,
      () => false,
    );
  });
}

describe.each(Object.entries(RECEIVERS))('The receiver in %s', (_name, startReceiver) => {
  it('accepts a delivery once, and refuses another body or sender', async () => {
    const [port = 0] = await freePorts(1);
    const url = `http://127.0.0.1:${port}/hooks`;
    const { webhookId } = await posthorn.api.createTarget(url);
    const { secret } = dataOf<{ secret: string }>(await posthorn.api.get(`/webhooks/${webhookId}`));
    const receiver = await startReceiver(secret, port);
    // 401 for a request without a signature.
    await untilListening(url, receiver);

    // As long as a payload may be, with text that parsing and printing would change.
    const payload = { event: 'order.paid', text: 'ä'.repeat(120_000) };
    const sent = await posthorn.api.send({ webhookId }, payload);
    await untilDelivered(posthorn.api, [sent]);
    // Printed, and then read from a pipe.
    await eventually('the line of it', () => receiver.output().includes(sent.messageId));
    expect(receiver.output().split(sent.messageId)).toHaveLength(2);

    dataOf(await posthorn.api.post(`/api/v1/deliveries/${sent.deliveryId}/resend`, {}));
    await eventually('the second delivery', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${sent.deliveryId}`);
      return (body.data as { attempts: unknown[] }).attempts.length === 2;
    });
    expect(receiver.output().split(sent.messageId)).toHaveLength(2);

    const forged = await fetch(url, {
      method: 'POST',
      body: '{"event":"order.paid"}',
      headers: {
        'webhook-id': 'msg_forged',
        'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
        'webhook-signature': 'v1,bm90IGEgc2lnbmF0dXJl',
      },
    });
    expect(forged.status).toBe(401);
    expect(receiver.output()).not.toContain('msg_forged');
  });
});

describe('The platform of the compose example', () => {
  let patient: Posthorn;

  beforeAll(async () => {
    // A receiver takes some time to start on a busy machine.
    const settings = { RETRY_DELAYS: '1s,2s,4s,8s,16s,32s', CIRCUIT_RESET_MS: '100' };
    patient = await startPosthorn(settings);
  });

  afterAll(() => patient.stop());

  it('creates its webhook once, and sends what the receiver accepts', async () => {
    const [port = 0] = await freePorts(1);
    const FOLDER = scratchFolder();
    writeFileSync(join(FOLDER, 'company.json'), JSON.stringify({ apiKey: patient.apiKey }));
    const url = `http://127.0.0.1:${port}/hooks`;
    const env = {
      FOLDER,
      POSTHORN_URL: patient.baseUrl,
      RECEIVER_URL: url,
      INTERVAL_MS: '200',
    };
    const startPlatform = (): Started => start(process.execPath, ['compose/platform.mjs'], env);
    const first = startPlatform();
    const order = (platform: Started): Promise<string | undefined> =>
      Promise.resolve(/order 1 is message (msg_\w+)/.exec(platform.output())?.[1]);
    // Nobody receives it yet: it is a retry that is accepted.
    const early = await eventually('an order', () => order(first));
    const receiver = await RECEIVERS.express?.(readFileSync(join(FOLDER, 'secret'), 'utf8'), port);
    const again = startPlatform();
    const late = await eventually('an order after another start', () => order(again));
    await eventually('both orders at the receiver', () => {
      const output = receiver?.output() ?? '';
      return Promise.resolve(output.includes(early) && output.includes(late));
    });
    const { body } = await patient.api.get('/api/v1/webhooks');
    const urls = (body.data as { url: string }[]).map((webhook) => webhook.url);
    expect(urls.filter((each) => each === url)).toHaveLength(1);
  });
});
