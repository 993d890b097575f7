#!/usr/bin/env node
// The entry point of the image, `posthorn` on its PATH. The kernel runs Node on this file, and a service is imported into
// that process: no shell and no second process is between it and its signals.
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '..');
/** The file of each service, from the root. `ingest` is the code of the gateway in another role. */
export const ENTRIES = {
  gateway: 'services/gateway/src/main.ts',
  dispatcher: 'services/dispatcher/src/main.ts',
  retry: 'services/retry/src/main.ts',
  ingest: 'services/gateway/src/ingest/main.ts',
  admin: 'services/admin/src/main.ts',
} as const;
const SETUP = [
  'create-topics',
  'create-indexes',
  'create-encryption-keys',
  'add-partitions',
  'print-mongodb-roles',
  'print-redis-users',
] as const;

/** The commands of the command line, which calls the API of an installation. They come before programs of these names. */
// prettier-ignore
export const COMMAND_LINE = [
  'login', 'logout', 'whoami', 'profile', 'project', 'app', 'webhook', 'message', 'listen', 'delivery', 'cancellation', 'resend',
  'replay', 'signature', 'export', 'diff', 'apply', 'import', 'event-type', 'api-key', 'signing-key', 'portal', 'overview', 'stats', 'failure',
  'circuit', 'find', 'source-ips', 'audit-event', 'open', 'api', 'doctor', 'completion', 'help',
] as const;

const HELP = `Posthorn ${manifest.version}: delivers webhooks

  posthorn gateway             the HTTP API and the dashboard
  posthorn dispatcher          makes the deliveries
  posthorn retry               waits for retries and repairs
  posthorn ingest              accepts the records of Kafka topics as messages
  posthorn admin …             companies, keys, dead letters, topics; posthorn admin --help lists all
  posthorn setup NAME …        makes the stores ready: ${SETUP.slice(0, 3).join(', ')},
                               ${SETUP.slice(3).join(', ')}
  posthorn login, message …    the command line for users of the API: project, app, webhook, listen, apply, import
                               and more; posthorn message --help lists what one of them does
  posthorn --version, --help   also -V and -h

Another program of the image runs as it is: posthorn node services/gateway/src/main.ts
`;

type Command =
  | { kind: 'print'; text: string }
  | { kind: 'import'; file: string; args: readonly string[] }
  | { kind: 'replace'; program: string; args: readonly string[] }
  | { kind: 'refuse'; reason: string };

/** Returns what the arguments ask for. `findProgram` returns the path of a program on the PATH. */
export function commandOf(
  args: readonly string[],
  findProgram: (name: string) => string | undefined,
): Command {
  const [name, ...others] = args;
  if (name === undefined) return { kind: 'refuse', reason: 'A command is missing' };
  if (['--version', '-V'].includes(name)) return { kind: 'print', text: `${manifest.version}\n` };
  // `posthorn help webhook get` is about a command of the command line.
  const isOfAll = name === 'help' && others.length === 0;
  if (['--help', '-h'].includes(name) || isOfAll) return { kind: 'print', text: HELP };
  if (isService(name)) return { kind: 'import', file: join(ROOT, ENTRIES[name]), args: others };
  if (name === 'setup') return setupCommandOf(others);
  if ((COMMAND_LINE as readonly string[]).includes(name)) {
    return { kind: 'import', file: join(ROOT, 'apps/cli/src/main.ts'), args };
  }
  const program = findProgram(name);
  if (program !== undefined) return { kind: 'replace', program, args };
  return { kind: 'refuse', reason: `There is no command ${name}` };
}

const isService = (name: string): name is keyof typeof ENTRIES => Object.hasOwn(ENTRIES, name);

function setupCommandOf([step, ...args]: readonly string[]): Command {
  if (step === undefined) return { kind: 'refuse', reason: 'The name of the setup is missing' };
  if (!(SETUP as readonly string[]).includes(step)) {
    return { kind: 'refuse', reason: `There is no setup ${step}` };
  }
  // As a program of its own: what it exports is imported elsewhere, and must not run there.
  const file = join(ROOT, `deploy/setup/${step}.ts`);
  return { kind: 'replace', program: process.execPath, args: [process.execPath, file, ...args] };
}

/** Returns the path of an executable file: the name itself when it is a path, else the first on the PATH. */
function findOnPath(name: string): string | undefined {
  if (name.includes('/')) return isExecutable(name) ? name : undefined;
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

async function run(command: Command): Promise<void> {
  switch (command.kind) {
    case 'print':
      process.stdout.write(command.text);
      return;
    case 'import':
      process.argv = [process.execPath, command.file, ...command.args];
      await import(command.file);
      return;
    case 'replace':
      // The process becomes the program and keeps its id, so signals go to the program.
      process.execve?.(command.program, [...command.args], process.env);
      throw new Error('This platform cannot replace a process by another program');
    case 'refuse':
      process.stderr.write(`${command.reason}.\n\n${HELP}`);
      process.exitCode = 2;
  }
}

if (import.meta.main) await run(commandOf(process.argv.slice(2), findOnPath));
