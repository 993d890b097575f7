import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { scratchFolder } from '../../support/process/scratch-folder.ts';
import { eventually } from '../../support/time/eventually.ts';

const ROOT = join(import.meta.dirname, '../../..');

interface Block {
  language: string;
  code: string;
}

/** The code blocks of a page, in order. */
function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', code = '']) => {
    return { language, code };
  });
}

interface Running {
  output: () => string;
  /** Its group, as Ctrl-C does in a terminal. */
  interrupt: () => Promise<void>;
  ended: Promise<number | null>;
}

let services: OwnCompany;
let api: Posthorn;
let folder: string;
let port: number;
const running: Running[] = [];

beforeAll(async () => {
  services = await joinShared('contract-after-retries');
  const { baseUrl, apiKey } = services;
  api = new Posthorn({ baseUrl, apiKey });
  [port = 0] = await freePorts(1);
  // A folder in which packages are found as in the checkout, and `npx` starts without npm. The Node of the machine may be
  // an older one, which cannot load TypeScript: only `npx node` is that of the checkout.
  folder = scratchFolder();
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(folder, 'bin'));
  const program = join(ROOT, 'apps/cli/src/main.ts');
  writeProgram('npx', [
    'name=$1',
    'shift',
    `[ "$name" = node ] && exec ${process.execPath} "$@"`,
    `[ "$name" = posthorn ] && exec ${process.execPath} ${program} "$@"`,
    'exit 1',
  ]);
  writeProgram('node', ['echo "node is that of the machine: use npx node" >&2', 'exit 1']);
}, 120_000);

function writeProgram(name: string, lines: readonly string[]): void {
  writeFileSync(join(folder, 'bin', name), ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 });
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.interrupt()));
});

afterAll(() => services.stop());

/** Runs a block of a page, on a port of this test in place of 3000. */
function run(block: Block | undefined, values: Record<string, string> = {}): Running {
  const { language, code } = block ?? { language: 'sh', code: 'exit 1' };
  const text = Object.entries({ 3000: String(port), ...values }).reduce(
    (changed, [from, to]) => changed.replaceAll(from, to),
    code,
  );
  if (language === 'js') writeFileSync(join(folder, 'block.mjs'), text);
  const child = spawn('sh', ['-ec', language === 'js' ? 'exec npx node block.mjs' : text], {
    cwd: folder,
    detached: true,
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`,
      POSTHORN_URL: services.baseUrl,
      POSTHORN_API_KEY: services.apiKey,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const ended = once(child, 'close').then(([status]) => status as number | null);
  const each = {
    output: () => output,
    ended,
    async interrupt() {
      if (child.exitCode === null && child.signalCode === null) {
        process.kill(-(child.pid ?? 0), 'SIGINT');
      }
      await ended;
    },
  };
  running.push(each);
  return each;
}

async function runToEnd(block: Block | undefined, values?: Record<string, string>) {
  const { ended, output } = run(block, values);
  const code = await ended;
  if (code !== 0) throw new Error(`exit code ${String(code)}: ${output()}`);
  return output();
}

const untilPrinted = (what: RegExp, { output }: Running): Promise<string> =>
  eventually(`${String(what)} in the output`, () => what.exec(output())?.[1]).catch(
    (error: unknown) => {
      throw new Error(output(), { cause: error });
    },
  );

const untilServed = (): Promise<unknown> =>
  eventually('a receiver', () =>
    fetch(`http://localhost:${port}/`, { method: 'POST', body: '{}' }).then(
      ({ status }) => status === 401,
      () => false,
    ),
  );

function writeReceiver(block: Block | undefined): void {
  writeFileSync(join(folder, 'receiver.mjs'), (block?.code ?? '').replaceAll('3000', String(port)));
}

const FRAMEWORKS = ['express', 'node:http'];

describe('docs/quickstart.md', () => {
  const blocks = blocksOf('docs/quickstart.md');
  const [start, doctor, listen, ...others] = blocks;
  const receivers = others.slice(0, FRAMEWORKS.length);
  const [receive, send, sendByClient, list, tail, resend, ...left] = others.slice(
    FRAMEWORKS.length,
  );
  let secret: string;

  const untilReady = async (): Promise<Running> => {
    const listening = run(listen);
    secret = await untilPrinted(/^secret: (whsec_\S+)$/m, listening);
    await untilPrinted(/^(ready): /m, listening);
    return listening;
  };

  it('has these blocks', () => {
    // `joinShared` is in its place.
    expect(start?.code).toBe('npm start\n');
    expect(left).toEqual([]);
  });

  it('checks the installation', async () => {
    expect(await runToEnd(doctor)).toMatch(/^ok +key /m);
  });

  it.each(FRAMEWORKS)('receives with %s', async (name) => {
    writeReceiver(receivers.find(({ code }) => code.includes(`from '${name}'`)));
    const listening = await untilReady();
    const receiving = run(receive, { 'whsec_…': secret });
    await untilServed();
    await runToEnd(send);
    const id = await untilPrinted(/(msg_\w+) \{ order: 17 \}/, receiving);
    await untilPrinted(new RegExp(`204 .* order\\.paid +(${id})`), listening);
  });

  it('sends with the client', async () => {
    await untilReady();
    run(receive, { 'whsec_…': secret });
    await untilServed();
    expect(await runToEnd(sendByClient)).toMatch(/^msg_\w+ delivered$/m);
  });

  it('shows what fails, and sends it again', async () => {
    const tailing = run(tail);
    await untilPrinted(/^(ready): /m, tailing);
    const listening = await untilReady();
    const sent = await api.messages.send({ appId: 'uid:cli-listen', payload: { order: 19 } });
    await untilPrinted(/(does not answer)/, listening);
    const shown = await runToEnd(list, { 'msg_…': sent.id });
    expect(shown).toContain(sent.id);
    await untilPrinted(new RegExp(`exhausted .*(${sent.id})`), tailing);

    run(receive, { 'whsec_…': secret });
    await untilServed();
    const [delivery] = sent.deliveries;
    await runToEnd(resend, { 'dlv_…': delivery?.id ?? '' });
    // It stays exhausted until the attempt has a result.
    await eventually('it is delivered', async () => {
      const { status } = await api.messages.waitUntilFinal(sent.id);
      return status === 'delivered';
    });
  });
});

describe('README.md', () => {
  const [start, shell, client] = blocksOf('README.md');

  it('listens and sends', async () => {
    expect(start?.code).toMatch(/^npm start .*\nnpm run demo .*\n$/);
    const [listen = '', send = ''] = shell?.code.split('\n') ?? [];
    const listening = run({ language: 'sh', code: listen });
    await untilPrinted(/^(ready): /m, listening);
    const sent = run({ language: 'sh', code: send });
    expect(await sent.ended).toBe(0);
    await untilPrinted(/(order\.paid)/, listening);
  });

  it('creates and sends with the client', async () => {
    const { baseUrl, apiKey } = services;
    const code = [
      "import { Posthorn } from '@posthorn/client';",
      `const apiKey = '${apiKey}';`,
      client?.code.replace('http://127.0.0.1:8080', baseUrl),
      'console.log(message.id);',
    ].join('\n');
    expect(await runToEnd({ language: 'js', code })).toMatch(/^msg_\w+$/m);
  });
});
