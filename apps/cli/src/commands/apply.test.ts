import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { lstatSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ModelApi } from '../../../../test/support/cli/model-api.ts';
import { scratchFolder } from '../../../../test/support/process/scratch-folder.ts';
import { OutputClosed } from '../failures.ts';
import { run } from '../program.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../../../docs/apply.md'), 'utf8');
const blocksOf = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(
    ([, text = '']) => text,
  );
const ENV = {
  ERP_SECRET: `whsec_${Buffer.alloc(32, 'a').toString('base64')}`,
  ERP_TOKEN: 'hidden-token',
};

let model: ModelApi;
let server: Server;
let url: string;
let folder: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    void answer(request.url ?? '', request.method ?? '', request).then(
      ({ status, headers, text }) => {
        response.writeHead(status, headers).end(text);
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.close();
  server.closeAllConnections();
});

async function answer(path: string, method: string, request: AsyncIterable<Buffer>) {
  let body = '';
  for await (const chunk of request) body += chunk.toString();
  const response = await model.fetch(`${url}${path}`, { method, ...(body !== '' && { body }) });
  const { status, headers } = response;
  return { status, headers: Object.fromEntries(headers), text: await response.text() };
}

function start(files: Record<string, string> = {}): void {
  model = new ModelApi();
  folder = scratchFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
}

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

async function posthorn(
  args: string,
  { env = {}, stdin = '', isOutputClosed = false } = {},
): Promise<Ended> {
  const printed = { stdout: '', stderr: '' };
  const interruption = new AbortController();
  const writeError = (text: string): void => {
    printed.stderr += text;
    if (isOutputClosed) interruption.abort(new OutputClosed());
  };
  const code = await run(args.split(' '), {
    env: { POSTHORN_URL: url, POSTHORN_API_KEY: 'key', ...env },
    folder,
    homeFolder: folder,
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: { write: (text) => (printed.stdout += text) },
    stderr: { write: writeError },
    browse: () => Promise.resolve(false),
    signal: interruption.signal,
  });
  return { code, ...printed };
}

const removeUid = (path: string): Promise<Response> =>
  model.fetch(`${url}/api/v1/${path}`, { method: 'PUT', body: '{"uid":null}' });

const SHOP = 'kind: Project\nuid: shop\nname: Shop\n';

describe('docs/apply.md', () => {
  test('has documents and commands that work, one after the other', async () => {
    const yaml = blocksOf('yaml').join('---\n');
    start({ 'posthorn.yaml': yaml });
    const lines = blocksOf('sh').join('').trim().split('\n');
    const codes: number[] = [];
    for (const line of lines) {
      const [, args = ''] = /^posthorn (.*?)( \|\| test \$\? -eq 5)?$/.exec(line) ?? [];
      const { code, stdout, stderr } = await posthorn(args, { env: ENV });
      expect(stdout + stderr).not.toMatch(/whsec_|hidden-token/);
      codes.push(code);
    }
    expect(codes).toEqual([5, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect([model.count('projects'), model.count('apps'), model.count('webhooks')]).toEqual([
      1, 1, 1,
    ]);
  });
});

describe('posthorn diff', () => {
  test('prints old and new values, and exits with 5', async () => {
    start({ 'shop.yaml': SHOP });
    await posthorn('apply -f shop.yaml --yes');
    writeFileSync(join(folder, 'shop.yaml'), 'kind: Project\nuid: shop\nname: "New\\e[2J"\n');
    const { code, stdout, stderr } = await posthorn('diff -f shop.yaml');
    expect(code).toBe(5);
    expect(stdout).toBe('~ Project shop\n    name: "Shop" → "New\\u001b[2J"\n');
    expect(stderr).toContain('0 to create, 1 to update, 0 to delete, 0 unchanged');
  });

  test('prints each problem of the documents in a line of its own', async () => {
    start({ 'shop.yaml': `${SHOP}nmae: x\n---\nkind: Pod\nuid: x\n` });
    const { code, stderr } = await posthorn('diff -f shop.yaml');
    expect(code).toBe(2);
    expect(stderr.split('\n').map((line) => line.replaceAll(`${folder}/`, ''))).toEqual([
      'error: The documents have 2 problems:',
      '  shop.yaml:4: Project shop: nmae is not a field of this kind',
      '  shop.yaml:6: kind must be Project, EventType, App, Webhook, not Pod',
      'see posthorn diff --help',
      '',
    ]);
  });

  test('reads standard input, folders and several files', async () => {
    start({ 'a.yaml': SHOP, 'b.yml': SHOP.replaceAll('shop', 'other'), 'c.txt': 'no: yaml' });
    const stdin = SHOP.replaceAll('shop', 'third');
    const { code, stdout } = await posthorn('diff --json -f . -f -', { stdin });
    const { changes } = JSON.parse(stdout) as { changes: { uid: string }[] };
    expect([code, changes.map(({ uid }) => uid)]).toEqual([5, ['shop', 'other', 'third']]);
  });

  test.each([
    ['diff -f none.yaml', 'none.yaml does not exist'],
    ['diff -f empty.yaml', 'there are no documents'],
    ['diff -f shop.yaml --prune', '--prune needs --name'],
    ['apply -f shop.yaml', 'Repeat the command with --yes'],
    ['diff', 'Set --file <path>'],
  ])('%s is refused', async (args, message) => {
    start({ 'shop.yaml': SHOP, 'empty.yaml': '# nothing\n' });
    const { code, stderr } = await posthorn(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(model.count('projects')).toBe(0);
  });
});

describe('posthorn apply', () => {
  test('reports an object that fails with its uid, makes the others, and exits with 1', async () => {
    const hook = (uid: string, at: string): string =>
      `---\nkind: Webhook\nuid: ${uid}\nprojectId: uid:shop\nenvironmentId: live\nurl: ${at}\n`;
    start({
      'shop.yaml': SHOP + hook('bad', 'http://10.0.0.1/') + hook('good', 'https://example.com'),
    });
    const { code, stdout, stderr } = await posthorn('apply -f shop.yaml --yes --json');
    expect([code, model.count('webhooks')]).toEqual([1, 1]);
    expect(stderr).toContain('error: Webhook bad: ');
    const { changes } = JSON.parse(stdout) as { changes: { uid: string; error: string | null }[] };
    expect(changes.map(({ uid, error }) => [uid, error !== null])).toEqual([
      ['shop', false],
      ['bad', true],
      ['good', false],
    ]);
  });

  test('that ends early because its output is closed does not exit with 0', async () => {
    start({ 'shop.yaml': SHOP });
    const { code } = await posthorn('apply -f shop.yaml --yes', { isOutputClosed: true });
    expect([code, model.count('projects')]).toEqual([141, 0]);
  });

  test('prints each problem of a refused object in a line of its own', async () => {
    start({ 'shop.yaml': SHOP });
    const errors = ['name', 'metadata'].map((path) => ({ path, message: 'is too long' }));
    model.interfere = ({ method }, carryOut) =>
      method === 'GET' ? carryOut() : { status: 400, code: 'invalid_request', errors };
    const { stderr } = await posthorn('apply -f shop.yaml --yes');
    expect(stderr).toContain(
      'error: Project shop: invalid_request (400 invalid_request)\n' +
        '  name: is too long\n  metadata: is too long\n',
    );
  });

  test('waits for a rate limit', async () => {
    start({ 'shop.yaml': SHOP });
    let refusals = 4;
    model.interfere = ({ method }, carryOut) => {
      if (method === 'GET' || refusals === 0) return carryOut();
      refusals -= 1;
      return { status: 429, code: 'rate_limited', headers: { 'retry-after': '0' } };
    };
    expect((await posthorn('apply -f shop.yaml --yes')).code).toBe(0);
    expect(model.count('projects')).toBe(1);
  });

  test('stops when the key is refused, and exits with 4', async () => {
    start({ 'shop.yaml': SHOP });
    model.interfere = ({ method }, carryOut) =>
      method === 'GET' ? carryOut() : { status: 401, code: 'unauthorized' };
    expect((await posthorn('apply -f shop.yaml --yes')).code).toBe(4);
  });

  test('prints the difference with --dry-run, and changes nothing', async () => {
    start({ 'shop.yaml': SHOP });
    const { code, stdout } = await posthorn('apply -f shop.yaml --dry-run');
    expect([code, stdout]).toEqual([0, '+ Project shop\n    name: "Shop"\n']);
    expect(model.count('projects')).toBe(0);
  });
});

describe('posthorn export', () => {
  test('lists what has no uid at its end, and can be applied with --json', async () => {
    start({ 'shop.yaml': SHOP });
    await posthorn('apply -f shop.yaml --yes');
    await removeUid('projects/uid:shop');
    const { code, stdout: named, stderr } = await posthorn('export');
    expect([code, named]).toEqual([
      0,
      expect.stringMatching(/^# Without a uid, .* --assign-uids\):\n# {3}Project \S+ \(Shop\)\n$/),
    ]);
    expect(stderr).toMatch(/^ {2}Project \S+ \(Shop\)\n$/m);
    const asJson = await posthorn('export --json -f shop.json');
    expect([asJson.code, readFileSync(join(folder, 'shop.json'), 'utf8').trim()]).toEqual([
      5,
      '[]',
    ]);
    expect(asJson.stderr).toContain('1 without a uid are not in the export: see --assign-uids');
    const { stdout } = await posthorn('export --assign-uids --json');
    const diff = await posthorn('diff -f -', { stdin: stdout });
    expect([diff.code, diff.stdout]).toEqual([0, '']);
  });

  test('prints one request with --assign-uids --dry-run, and changes nothing', async () => {
    start({ 'both.yaml': `${SHOP}---\n${SHOP.replace('shop', 'other')}` });
    await posthorn('apply -f both.yaml --yes');
    await removeUid('projects/uid:shop');
    await removeUid('projects/uid:other');
    const { code, stdout } = await posthorn('export --assign-uids --dry-run --json');
    expect([code, stdout.match(/"method":"PUT"/g)]).toEqual([0, ['"method":"PUT"']]);
    expect((await posthorn('export')).stdout).toMatch(/(# {3}Project .*\n){2}$/);
  });

  test.each([
    ['--project uid:shop', ['Project shop', 'App a', 'App b', 'Webhook of-a', 'Webhook of-shop']],
    ['--app uid:a', ['App a', 'Webhook of-a']],
    ['--app uid:x', ['App x', 'Webhook of-x']],
  ])('of %s has what belongs to it, and makes no difference', async (option, expected) => {
    const app = (uid: string, project: string): string =>
      `---\nkind: App\nuid: ${uid}\nname: ${uid}\nprojectId: uid:${project}\n`;
    const hook = (uid: string, owner: string): string =>
      `---\nkind: Webhook\nuid: ${uid}\nurl: https://example.com\n${owner}\n`;
    const other = `---\n${SHOP.replace('shop', 'other')}${app('x', 'other')}`;
    const hooks = [
      hook('of-a', 'appId: uid:a'),
      hook('of-shop', 'projectId: uid:shop\nenvironmentId: live'),
      hook('of-x', 'appId: uid:x'),
    ];
    start({ 'all.yaml': SHOP + app('a', 'shop') + app('b', 'shop') + other + hooks.join('') });
    expect((await posthorn('apply -f all.yaml --yes')).code).toBe(0);
    const { stdout } = await posthorn(`export ${option}`);
    const names = [...stdout.matchAll(/^kind: (\w+)\nuid: (\S+)$/gm)];
    expect(names.map(([, kind, uid]) => `${kind ?? ''} ${uid ?? ''}`)).toEqual(expected);
    expect((await posthorn('diff -f -', { stdin: stdout })).code).toBe(0);
  });

  test('of a project that is not there fails', async () => {
    start();
    expect((await posthorn('export --project uid:gone')).code).toBe(1);
  });

  test('leaves out the temporary webhook of a listen that runs', async () => {
    const hook =
      '---\nkind: Webhook\nuid: hook\nprojectId: uid:shop\nenvironmentId: live\n' +
      'url: https://example.com\nmetadata: { posthornListen: "true" }\n';
    start({ 'shop.yaml': SHOP + hook });
    await posthorn('apply -f shop.yaml --yes');
    await removeUid('webhooks/uid:hook');
    const { code, stdout } = await posthorn('export --assign-uids');
    expect([code, model.count('webhooks'), stdout.match(/^kind: .*/gm)]).toEqual([
      0,
      1,
      ['kind: Project'],
    ]);
  });

  test('keeps a link to its file, which may have a byte-order mark', async () => {
    start({ 'shop.yaml': `\uFEFF${SHOP}` });
    await posthorn('apply -f shop.yaml --yes');
    symlinkSync('shop.yaml', join(folder, 'link.yaml'));
    expect((await posthorn('export -f link.yaml')).code).toBe(0);
    expect(lstatSync(join(folder, 'link.yaml')).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'shop.yaml'), 'utf8')).toMatch(/^# |^kind: /);
    expect((await posthorn('diff -f shop.yaml')).code).toBe(0);
  });

  test('has no character that controls a terminal, and makes no difference', async () => {
    start({ 'shop.yaml': SHOP.replace('Shop', '"a \\x9b31m\\x7f b"') });
    await posthorn('apply -f shop.yaml --yes');
    const { stdout } = await posthorn('export');
    expect(stdout).toContain('\\x9b31m\\x7f');
    expect(stdout).not.toMatch(/[\x7f-\x9f]/);
    expect((await posthorn('diff -f -', { stdin: stdout })).code).toBe(0);
  });
});
