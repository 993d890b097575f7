import { describe, expect, it } from '@jest/globals';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runIn, worldOf } from '../../../test/support/cli/printing-world.ts';
import { createProgram } from './program.ts';

const NOBODY = { POSTHORN_URL: '', POSTHORN_API_KEY: '', WRONG: 'hunter2!' };

/** A wrong use, what is said about it, and the command whose help is named. */
const WRONG: [command: string, problem: string, about: string][] = [
  ['webhok', 'There is no command posthorn webhok; did you mean webhook?', ''],
  ['webhook gett', 'There is no command posthorn webhook gett; did you mean get?', 'webhook'],
  ['help webhook gett', 'There is no command posthorn webhook gett', ''],
  ['webhook get', '<id> is missing: posthorn webhook get <id>', 'webhook get'],
  ['webhook get a b', 'posthorn webhook get takes 1 argument, and got 2', 'webhook get'],
  ['webhook get ', '<id> must not be empty', 'webhook get'],
  ['whoami x', 'posthorn whoami takes no argument, and got 1', 'whoami'],
  ['--profil a whoami', 'There is no option --profil; did you mean --profile?', ''],
  ['app list --limit x', '--limit: expected a whole number of at least 1', 'app list'],
  ['app list --limit', '--limit <count> needs a value', 'app list'],
  ['app list --project a --search b', 'Use --project or --search, not both', 'app list'],
  [
    'message list --status none',
    '--status: expected pending, delivered, exhausted, cancelled or no_target',
    'message list',
  ],
  ['completion csh', '<shell>: expected bash, zsh or fish', 'completion'],
  ['resend start --webhook a', 'Set --since <time>', 'resend start'],
  ['diff', 'Set --file <path>', 'diff'],
  ['delivery list --message m --app a', '--message stands alone', 'delivery list'],
  ['listen', 'Name a port or a URL to forward to, such as posthorn listen 3000', 'listen'],
  ['message send --payload [1]', '--payload is not a JSON object', 'message send'],
  ['project create --data {', '--data is not a JSON object (line 1, column 2)', 'project create'],
  ['webhook update w1', 'Set what is to change, such as --url <url>', 'webhook update'],
  ['portal link', '<app> is missing, and no .posthorn/config.toml has one', 'portal link'],
  [
    'webhook create --file - --secret-stdin',
    '--secret-stdin and --file -: only one of them can read standard input',
    'webhook create',
  ],
  [
    'webhook create --secret-env NONE',
    '--secret-env: the environment has no variable NONE',
    'webhook create',
  ],
  ['message send --file none.json', '--file none.json: there is no such file', 'message send'],
  ['message send --file . --ndjson --app a', '--file .: it is a folder', 'message send'],
  [
    'signature verify --secret-env WRONG',
    '--secret-env WRONG: expected whsec_ and base64',
    'signature verify',
  ],
  [
    'signature verify --service-signature --jwks-url https://example.com',
    'Set --secret-env or --secret-stdin for --service-signature',
    'signature verify',
  ],
  ['message wait m --timeout 0s', '--timeout: expected more than 0, such as 90s', 'message wait'],
];

describe('a wrong use', () => {
  it.each(WRONG)(
    '"%s" is reported with its place before a missing API key',
    async (command, problem, about) => {
      const { code, err } = await runIn(command.split(' '), NOBODY);
      const path = `posthorn ${about}`.trim();
      expect([code, err]).toEqual([2, `error: ${problem}\nsee ${path} --help\n`]);
    },
  );

  it('of a time is answered with the times that are taken', async () => {
    const { code, err } = await runIn(['message', 'list', '--since', 'yesterday'], NOBODY);
    expect(code).toBe(2);
    expect(err).toContain(
      '--since: expected a time such as 2026-01-31T09:30:00Z, a day such as 2026-01-31 (from 00:00 UTC), or how long ago, such as 90s',
    );
    const later = await runIn(['webhook', 'hold', 'w', '--until', 'tomorrow'], NOBODY);
    expect(later.err).toContain('or how long from now, such as 90s');
  });

  it.each([
    'webhook get w1',
    'message send --app a --payload {}',
    'message send --app a --payload {} --count 3',
    'message send --app a --stdin --ndjson',
    'message tail',
    'listen 3000',
    'api GET /me',
    'open',
    'doctor',
    'export',
  ])('that lies in the settings names what is missing, and no help: %s', async (command) => {
    const { code, err } = await runIn(command.split(' '), NOBODY, '{}');
    const expected =
      'error: There is no API key: run posthorn login, or set POSTHORN_URL and POSTHORN_API_KEY\n';
    expect([code, err]).toEqual([2, expected]);
  });

  it('of a key that cannot be one names where it comes from', async () => {
    const { code, err } = await runIn(['whoami'], { POSTHORN_API_KEY: 'phk_\u00e9' });
    const expected =
      'error: The API key (POSTHORN_API_KEY) is empty, or has characters that no API key has\n';
    expect([code, err]).toEqual([2, expected]);
  });

  it('of standard input that is no JSON has the line and the column, and not the text', async () => {
    const args = ['message', 'send', '--app', 'a', '--stdin'];
    const { err } = await runIn(args, NOBODY, '{\n "secret": oops }');
    expect(err).toMatch(/^error: Standard input is not a JSON object/);
    expect(err).not.toContain('oops');
  });
});

it('names the option of each field that the API refuses', async () => {
  const errors = [
    { path: 'url', message: 'must be https' },
    { path: 'eventTypes.1', message: 'is too long' },
    { path: 'name', message: 'is taken' },
  ];
  const server = createServer((_, response) => {
    response.writeHead(400);
    response.end(
      JSON.stringify({ success: false, code: 'invalid_request', message: 'Invalid', errors }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const options = [
    '--url',
    'x',
    '--event-type',
    'a',
    '--event-type',
    'b',
    '--data',
    '{"name":"n"}',
  ];
  const { code, err } = await runIn(['webhook', 'create', ...options], { POSTHORN_URL: url });
  server.close();
  expect([code, err]).toEqual([
    1,
    'error: Invalid (400 invalid_request)\n' +
      '  --url: must be https\n  --event-type: is too long\n  name: is taken\n',
  ]);
});

describe('help', () => {
  it.each([
    ['help webhook get', 'Usage: posthorn webhook get [options] <id>'],
    ['help message send', 'Usage: posthorn message send [options]'],
    ['webhook help get', 'Usage: posthorn webhook get [options] <id>'],
    ['help', 'Usage: posthorn [options] [command]'],
  ])('"%s" prints that of the command', async (command, first) => {
    const { code, out } = await runIn(command.split(' '));
    expect([code, out.split('\n', 1)[0]]).toEqual([0, first]);
  });

  it('of the options of every command is the table of the README', () => {
    const path = join(import.meta.dirname, '../README.md');
    const [, table = ''] =
      /^\| option .*\n.*\n((?:\|.*\n)+)/m.exec(readFileSync(path, 'utf8')) ?? [];
    const rows = table
      .trim()
      .split('\n')
      .map((row) => row.split('|').map((cell) => cell.trim()));
    const { options } = createProgram(worldOf());
    const common = options.filter(({ long }) => long !== '--version');
    expect(rows.map(([, flags, help]) => [flags, help])).toEqual(
      common.map(({ flags, description }) => [`\`${flags}\``, description]),
    );
  });
});
