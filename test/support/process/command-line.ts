import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { eventually } from '../time/eventually.ts';
import type { Ended } from './service-process.ts';

/** Its program. */
export const COMMAND_LINE = join(import.meta.dirname, '../../../apps/cli/src/main.ts');

/** `posthorn` as its own process. */
export interface RunningCommand {
  pid: number;
  stdout: () => string;
  stderr: () => string;
  /** The events that a stream with `--json` has printed: their data, and their type beside it. */
  events: () => Record<string, unknown>[];
  signal: (signal: NodeJS.Signals) => void;
  ended: Promise<Ended>;
}

export interface CommandPlace {
  baseUrl: string;
  apiKey: string;
  env?: Record<string, string>;
  folder?: string;
  stdin?: string;
}

export function startCommand(
  args: readonly string[],
  { baseUrl, apiKey, env = {}, folder = '/', stdin = '' }: CommandPlace,
): RunningCommand {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', COMMAND_LINE, ...args],
    {
      cwd: folder,
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        POSTHORN_URL: baseUrl,
        POSTHORN_API_KEY: apiKey,
        ...env,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    },
  );
  // The command may end without reading.
  child.stdin.on('error', () => undefined).end(stdin);
  const printed = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (printed.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (printed.stderr += chunk.toString()));
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  return {
    pid: child.pid ?? 0,
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
    events: () => eventsOf(printed.stdout),
    signal: (signal) => child.kill(signal),
    ended: closed.then(([code, signal]) => ({ code, signal })),
  };
}

interface StreamEvent {
  type: string;
  data: Record<string, unknown>;
}

/** The last line may not be complete yet. */
const eventsOf = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const { type, data } = JSON.parse(line) as StreamEvent;
      return { type, ...data };
    });

/** Waits for an event of `--json` with these fields, and returns it. */
export function untilEvent(
  command: RunningCommand,
  fields: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const isWanted = (event: Record<string, unknown>): boolean =>
    Object.entries(fields).every(([name, value]) => event[name] === value);
  return eventually(`an event ${JSON.stringify(fields)}`, () =>
    command.events().find(isWanted),
  ).catch((error: unknown) => {
    throw new Error(`${command.stdout()}\n${command.stderr()}`, { cause: error });
  });
}
