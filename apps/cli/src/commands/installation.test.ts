import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { runIn, worldOf } from '../../../../test/support/cli/printing-world.ts';
import { scratchFolder } from '../../../../test/support/process/scratch-folder.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { run } from '../program.ts';

let server: Server;
let url: string;
let answer: { status: number; text: string };
const got: Pick<IncomingMessage, 'method' | 'url' | 'headers'>[] = [];
const bodies: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      got.push(request);
      bodies.push(body);
      response.writeHead(answer.status).end(answer.text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  answer = { status: 200, text: '{"success":true,"data":{"id":"p1"}}' };
  got.length = 0;
  bodies.length = 0;
});

afterAll(() => {
  server.close();
});

const posthorn = (args: readonly string[], stdin = '') =>
  runIn(args, { POSTHORN_URL: `${url}/` }, stdin);

describe('posthorn api', () => {
  it('makes the request, byte for byte, and prints the answer as it is', async () => {
    const args = ['api', 'put', '/webhooks/uid:a', '--data', '{"n": 1.0}', '--header', 'X-A: b'];
    expect(await posthorn(args)).toEqual({ code: 0, out: `${answer.text}\n`, err: '' });
    expect(got).toMatchObject([
      {
        method: 'PUT',
        url: '/api/v1/webhooks/uid:a',
        headers: {
          authorization: 'Bearer phk_key',
          'content-type': 'application/json',
          'x-a': 'b',
        },
      },
    ]);
    expect(bodies).toEqual(['{"n": 1.0}']);
  });

  it.each([
    ['webhooks?limit=1', '/api/v1/webhooks?limit=1&q=a%20b'],
    ['/api/v1/webhooks', '/api/v1/webhooks?q=a%20b'],
    ['//example.com/webhooks', '/api/v1/example.com/webhooks?q=a%20b'],
  ])('takes the path %s, and parameters', async (path, expected) => {
    await posthorn(['api', 'GET', path, '--query', 'q=a b']);
    expect(got).toMatchObject([{ method: 'GET', url: expected }]);
  });

  it.each([
    ['--stdin', '', '{"from":"input"}'],
    ['--file', '-', '{"from":"input"}'],
    ['--file', 'body.json', '{"from":"file"}'],
  ])('reads the body of %s %s', async (option, value, expected) => {
    const folder = scratchFolder();
    writeFileSync(join(folder, 'body.json'), '{"from":"file"}');
    const world = { ...worldOf({ POSTHORN_URL: url }, '{"from":"input"}'), folder };
    const args = ['api', 'POST', '/projects', option, value].filter(Boolean);
    expect(await run(args, world)).toBe(0);
    expect(bodies).toEqual([expected]);
  });

  it.each([
    [404, 1],
    [403, 4],
  ])('prints the answer %i too, and ends with %i', async (status, code) => {
    answer = { status, text: '{"success":false,"code":"x"}' };
    expect(await posthorn(['api', 'GET', '/projects/p1'])).toEqual({
      code,
      out: `${answer.text}\n`,
      err: `error: The API answered ${status}\n`,
    });
  });

  it('prints the request of --dry-run without its secrets, and makes none', async () => {
    const body = '{"secret":"whsec_hidden"}';
    const { code, out } = await posthorn(['api', 'PUT', '/x', '--stdin', '--dry-run'], body);
    expect([code, out]).toEqual([
      0,
      `method: PUT\nurl: ${url}/api/v1/x\nbody: {"secret":"********"}\n`,
    ]);
    expect(got).toEqual([]);
  });

  it.each([
    [['PATCH', '/x'], '<method>: expected GET, POST, PUT, DELETE'],
    [['GET', 'https://example.com/x'], '<path>: expected a path, not a whole address'],
    [['GET', '/x', '--data', '{}'], 'GET has no body'],
    [['POST', '/x', '--data', '[]'], '--data is not a JSON object'],
    [['POST', '/x', '--data', '{}', '--stdin'], 'Use --data, --file or --stdin, one of them'],
    [
      ['POST', '/x', '--data', '{"secret":"whsec_hidden"}'],
      'Other users see arguments, and shells store them: put secret into a file for --file, or use --stdin',
    ],
  ])('refuses %j', async (args, problem) => {
    const { code, err } = await posthorn(['api', ...args]);
    expect([code, err]).toEqual([2, `error: ${problem}\nsee posthorn api --help\n`]);
    expect(got).toEqual([]);
  });

  it('ends with 3 when nothing answers', async () => {
    const { code, err } = await runIn(['api', 'GET', '/me']);
    expect([code, err]).toEqual([3, expect.stringMatching(/^error: Cannot connect/)]);
  });
});

describe('posthorn open', () => {
  const open = async (...args: string[]) => {
    const world = worldOf({ POSTHORN_URL: `${url}/` });
    const code = await run(['open', ...args], world);
    return { code, out: world.printed.out, browsed: world.browsed };
  };

  it('opens the dashboard, and prints its address', async () => {
    const address = `${url}/dashboard/`;
    expect(await open()).toEqual({ code: 0, out: `${address}\n`, browsed: [address] });
    expect((await open('--dry-run')).browsed).toEqual([]);
  });

  it.each([
    [{ kind: 'webhook', id: 'wh_1' }, '/webhooks/wh_1'],
    [{ kind: 'attempt', id: 'att_1', messageId: 'msg_1' }, '/messages/msg_1'],
  ])('opens the page of what has the id: %j', async (found, page) => {
    answer.text = JSON.stringify({ success: true, data: found });
    expect((await open(found.id)).browsed).toEqual([`${url}/dashboard${page}`]);
  });

  it('starts the browser of the environment, or says that there is none', async () => {
    const folder = scratchFolder();
    const opened = join(folder, 'opened');
    const browser = join(folder, 'browser');
    writeFileSync(browser, `#!/bin/sh\necho "$1" > ${opened}.part; mv ${opened}.part ${opened}\n`, {
      mode: 0o755,
    });
    const program = join(import.meta.dirname, '../main.ts');
    const start = async (variable: string): Promise<string> => {
      const env = { POSTHORN_URL: url, POSTHORN_API_KEY: 'phk_1', BROWSER: variable };
      const child = spawn(process.execPath, [program, 'open'], {
        env: { ...process.env, NODE_OPTIONS: '', ...env },
        cwd: '/',
      });
      let err = '';
      child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
      await once(child, 'close');
      return err;
    };
    await start(browser);
    const text = await eventually('the browser', () => {
      try {
        return readFileSync(opened, 'utf8');
      } catch {
        return undefined;
      }
    });
    expect(text).toBe(`${url}/dashboard/\n`);
    expect(await start(join(folder, 'none'))).toContain('No browser can be started here');
  });
});
