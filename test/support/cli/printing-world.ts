import { Readable } from 'node:stream';
import { run } from '../../../apps/cli/src/program.ts';

/** A world for the command line that keeps what it prints. */
export function worldOf(env: Record<string, string> = {}, stdin = '') {
  const printed = { out: '', err: '' };
  const browsed: string[] = [];
  return {
    printed,
    /** The addresses that were opened in a browser. */
    browsed,
    env: { POSTHORN_URL: 'http://127.0.0.1:1', POSTHORN_API_KEY: 'phk_key', ...env },
    folder: '/',
    homeFolder: '/',
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: { write: (text: string) => (printed.out += text) },
    stderr: { write: (text: string) => (printed.err += text) },
    browse: (url: string) => Promise.resolve(browsed.push(url) > 0),
    signal: new AbortController().signal,
  };
}

/** Runs a command, and returns its exit code and what it printed. */
export async function runIn(args: readonly string[], env: Record<string, string> = {}, stdin = '') {
  const world = worldOf(env, stdin);
  const code = await run(args, world);
  return { code, ...world.printed };
}
