import { describe, expect, it } from '@jest/globals';
import { Readable } from 'node:stream';
import { EXIT } from '../failures.ts';
import { run } from '../program.ts';

const TOKEN = 'testsk_very-secret';

/** Runs the command without an API. */
async function runWith(args: readonly string[], env: Record<string, string> = {}, stdin = '') {
  const printed: string[] = [];
  const stream = { write: (text: string) => printed.push(text) };
  const code = await run(['import', ...args], {
    env: { POSTHORN_URL: 'http://127.0.0.1:1', POSTHORN_API_KEY: 'phk_key', ...env },
    folder: '/',
    homeFolder: '/',
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: stream,
    stderr: stream,
    browse: () => Promise.resolve(false),
    signal: new AbortController().signal,
  });
  return { code, printed: printed.join('') };
}

describe('posthorn import', () => {
  it.each([
    ['svix', 'SVIX_TOKEN'],
    ['convoy', 'CONVOY_API_KEY'],
    ['outpost', 'OUTPOST_API_KEY'],
  ])('names the variable that %s needs', async (service, variable) => {
    const project = service === 'convoy' ? ['--from-project', 'p1'] : [];
    const { code, printed } = await runWith([service, ...project]);

    expect(code).toBe(EXIT.usage);
    expect(printed).toContain(`Set ${variable}, or use --token-stdin`);
  });

  it('takes an empty standard input for no token', async () => {
    expect((await runWith(['svix', '--token-stdin'], {}, '\n')).code).toBe(EXIT.usage);
  });

  it('needs to know where Convoy is, and which of its projects', async () => {
    const env = { CONVOY_API_KEY: TOKEN };
    const nowhere = await runWith(['convoy', '--from-project', 'p1'], env);
    const anywhere = await runWith(['convoy', '--url', 'http://127.0.0.1:1'], env);

    expect(nowhere).toMatchObject({ code: EXIT.usage });
    expect(nowhere.printed).toContain('Set --url');
    expect(anywhere).toMatchObject({ code: EXIT.usage });
  });

  it('never prints a token', async () => {
    const args = ['svix', '--url', 'ftp://example.com', '--token-stdin', '--verbose'];
    const { code, printed } = await runWith(args, {}, `${TOKEN} and more`);

    expect(code).toBe(EXIT.usage);
    expect(printed).not.toContain(TOKEN);
  });

  it('never prints a password in the address', async () => {
    const args = ['svix', '--url', 'http://me:hidden-password@127.0.0.1:1', '--dry-run'];
    const { code, printed } = await runWith(args, { SVIX_TOKEN: TOKEN });

    expect(code).toBe(EXIT.usage);
    expect(printed).toContain('--url must begin with http:// or https://');
    expect(printed).not.toContain('hidden-password');
  });

  it('reports that Posthorn cannot be reached before it reads anything', async () => {
    const { code, printed } = await runWith(['svix', '--url', 'http://127.0.0.1:1', '--dry-run'], {
      SVIX_TOKEN: TOKEN,
    });

    expect(code).toBe(EXIT.unreachable);
    expect(printed).not.toContain(TOKEN);
  });
});
