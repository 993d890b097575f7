import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import { createProgram } from '../apps/cli/src/program.ts';
import type { World } from '../apps/cli/src/session.ts';
import { scratchFolder } from '../test/support/process/scratch-folder.ts';
import { COMMAND_LINE } from './posthorn.ts';

/** As in the image: a link on the PATH to the executable file, whose first line names Node. */
function linked(): string {
  const link = join(scratchFolder(), 'posthorn');
  symlinkSync(join(import.meta.dirname, 'posthorn.ts'), link);
  return link;
}

const ENV = {
  PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ''}`,
  NODE_NO_WARNINGS: '1',
  // Half of the time of a start on a busy machine.
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../node_modules/.cache/compile'),
};

/** In another folder than /app: what runs must not depend on it. */
function start(args: string[], env: Record<string, string> = {}) {
  const child = spawn(linked(), args, {
    cwd: scratchFolder(),
    env: { ...ENV, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]).then(
    ([[code, signal], out, err]) => ({
      code: code as number | null,
      signal: signal as string | null,
      out,
      err,
    }),
  );
  return { child, ended };
}

describe('posthorn', () => {
  it('has every command of the command line, also one with the name of a program', async () => {
    const { commands } = createProgram({} as World);
    const names = commands.map((each) => each.name());
    expect([...COMMAND_LINE].sort()).toEqual(names.sort());
    const { code, out } = await start(['diff', '--help']).ended;
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('posthorn diff') });
  });

  it.each(['--version', '-V'])('prints the version of the release with %s', async (option) => {
    expect(await start([option]).ended).toMatchObject({ code: 0, out: `${VERSION}\n` });
  });

  it('prints the help of a command of the command line with its words', async () => {
    const { code, out } = await start(['help', 'webhook', 'get']).ended;
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringContaining('Usage: posthorn webhook get'),
    });
  });

  it.each(['--help', '-h', 'help'])('prints every command with %s', async (option) => {
    const { code, out } = await start([option]).ended;
    expect(code).toBe(0);
    for (const command of ['gateway', 'dispatcher', 'retry', 'admin …', 'setup NAME …']) {
      expect(out).toContain(`posthorn ${command}`);
    }
  });

  it.each([
    [['gatway'], 'There is no command gatway.'],
    [['./no-such-file'], 'There is no command ./no-such-file.'],
    [['setup', 'topics'], 'There is no setup topics.'],
    [['setup'], 'The name of the setup is missing.'],
    [[], 'A command is missing.'],
  ])('refuses %j with 2 and lists the commands', async (args, reason) => {
    const { code, out, err } = await start(args).ended;
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(reason);
    expect(err).toContain('posthorn dispatcher');
  });

  it.each(['gateway', 'dispatcher', 'retry'])(
    'starts the %s, whose exit code it has',
    async (name) => {
      const { code, err } = await start([name]).ended;
      expect(code).toBe(1);
      expect(err).toContain(`Posthorn ${name} cannot start, these settings are wrong:`);
    },
  );

  it('passes the arguments on to the administration command', async () => {
    const { code, out } = await start(['admin', 'company', '--help']).ended;
    expect(code).toBe(0);
    expect(out).toContain('Usage: admin company');
  });

  it('runs a setup with its arguments', async () => {
    const { code, out } = await start(['setup', 'print-redis-users', 'mine:']).ended;
    expect(code).toBe(0);
    expect(out).toContain('%R~mine:rate:*');
  });

  it.each([
    [
      'a service by its file',
      [join(import.meta.dirname, '../services/admin/src/main.ts'), '--help'],
    ],
    ['options of Node', ['-e', 'console.log("Usage: admin")']],
  ])('runs %s', async (_what, args) => {
    const { code, out } = await start(['node', ...args]).ended;
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('Usage: admin') });
  });

  it('becomes another program, whose exit code it has', async () => {
    const { child, ended } = start(['sh', '-c', 'echo $$; exit 7']);
    expect(await ended).toMatchObject({ code: 7, out: `${String(child.pid)}\n` });
  });
});

/** Accepts connections and never responds, so that a service waits for its store. */
async function silentStore() {
  const connected = Promise.withResolvers<undefined>();
  const server = createServer(() => {
    connected.resolve(undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { address: `127.0.0.1:${port}`, connected: connected.promise, server };
}

describe('a signal', () => {
  it('reaches the service itself, which ends with 0', async () => {
    const { address, connected, server } = await silentStore();
    const { child, ended } = start(['dispatcher'], {
      KAFKA_BROKERS: address,
      MONGODB_URL: `mongodb://${address}/posthorn`,
      REDIS_URL: `redis://${address}`,
      ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
      OPS_PORT: '0',
    });
    await Promise.race([connected, ended]);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null });
    server.close();
  });
});
