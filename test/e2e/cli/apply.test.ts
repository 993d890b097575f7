import { beforeAll, describe, expect, it } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import fc from 'fast-check';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type RandomDocument, randomDocuments } from '../../support/cli/random-documents.ts';
import { scratchFolder } from '../../support/process/scratch-folder.ts';
import { startStoreProxy } from '../../support/process/store-proxy.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { selfSigned } from '../../support/receivers/self-signed.ts';
import { eventually } from '../../support/time/eventually.ts';

const MAIN = join(import.meta.dirname, '../../../apps/cli/src/main.ts');
const PROJECTS = 5;
const APPS = 25;
const WEBHOOKS = 170;

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

const { posthorn } = useCompany('contract');
let client: Posthorn;
let scratch: string;
let documents: RandomDocument[];

beforeAll(() => {
  const { baseUrl, apiKey } = posthorn;
  client = new Posthorn({ baseUrl, apiKey });
  scratch = scratchFolder();
  const certificates = [selfSigned('a.example.com')];
  const shape = { projects: PROJECTS, apps: APPS, webhooks: WEBHOOKS, certificates };
  [documents = []] = fc.sample(randomDocuments(shape), { numRuns: 1, seed: 39 });
  writeDocuments('shop', documents);
});

/** Writes a folder with a file for each kind. */
function writeDocuments(folder: string, written: readonly RandomDocument[]): void {
  mkdirSync(join(scratch, folder), { recursive: true });
  for (const [kind, ofKind] of Map.groupBy(written, ({ document }) => String(document.kind))) {
    const text = ofKind.map(({ document }) => stringify(document)).join('---\n');
    writeFileSync(join(scratch, folder, `${kind}.yaml`), text);
  }
}

const secretsOf = (written: readonly RandomDocument[]): Record<string, string> =>
  Object.assign({}, ...written.map(({ env }) => env)) as Record<string, string>;

function start(args: readonly string[], env: Record<string, string> = {}) {
  const { baseUrl, apiKey } = posthorn;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: scratch,
    env: {
      HOME: scratch,
      POSTHORN_URL: baseUrl,
      POSTHORN_API_KEY: apiKey,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => (printed[name] += text));
  }
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => {
      resolve({ code, ...printed });
    });
  });
  return { child, ended };
}

const run = (args: readonly string[], env?: Record<string, string>): Promise<Ended> =>
  start(args, env).ended;

async function counts(): Promise<number[]> {
  const projects = await Array.fromAsync(client.projects.list());
  const apps = await Array.fromAsync(client.apps.find({ limit: 100 }));
  const webhooks = await Array.fromAsync(client.webhooks.find({ limit: 100 }));
  return [projects.length, apps.length, webhooks.length];
}

describe('posthorn apply', () => {
  it('ends the same when it is killed in the middle and repeated, and the next diff is empty', async () => {
    const env = secretsOf(documents);
    const first = await run(['diff', '-f', 'shop'], env);
    expect([first.code, first.stderr]).toEqual([5, expect.stringContaining('200 to create')]);

    // The forty-first webhook never comes to the gateway. Up to eight are on their way at once.
    const webhooks = documents.filter(({ document }) => document.kind === 'Webhook');
    const proxy = await startStoreProxy(posthorn.baseUrl);
    proxy.freezeAt(`PUT /api/v1/webhooks/uid:${String(webhooks[40]?.document.uid)}?`);
    const through = { ...env, POSTHORN_URL: proxy.url };
    const { child, ended } = start(['apply', '-f', 'shop', '--yes'], through);
    await eventually('some webhooks', async () => ((await counts())[2] ?? 0) > 20);
    child.kill('SIGKILL');
    await ended;
    await proxy.close();
    const [, , some = 0] = await counts();
    expect(some).toBeLessThan(WEBHOOKS);

    const second = await run(['apply', '-f', 'shop', '--yes', '--json'], env);
    expect([second.code, second.stderr]).toEqual([0, expect.anything()]);
    expect(await counts()).toEqual([PROJECTS, APPS, WEBHOOKS]);
    const diff = await run(['diff', '-f', 'shop', '--json'], env);
    expect(JSON.parse(diff.stdout)).toMatchObject({ changes: [], unchanged: 200 });
    expect(diff.code).toBe(0);
  }, 600_000);

  it('finds a change made elsewhere and a changed secret, shows no secret, and undoes it', async () => {
    const part = documents.filter(({ document }) => /-[0-4]$/.test(String(document.uid)));
    writeDocuments('part', part);
    const env = secretsOf(part);
    const [name = ''] = Object.keys(env).filter((each) => each.endsWith('_secret'));
    const [, n = ''] = name.split('_');
    const secret = `whsec_${Buffer.alloc(32, 'other').toString('base64')}`;
    await client.projects.update('uid:project-1', { name: 'Changed elsewhere' });
    const changed = { ...env, [name]: secret };
    const diff = await run(['diff', '-f', 'part'], changed);
    expect(diff.code).toBe(5);
    expect(diff.stdout).toContain(`~ Webhook webhook-${n}\n    secret: (not shown)\n`);
    expect(diff.stdout).toContain('~ Project project-1\n    name: "Changed elsewhere" → ');
    const applied = await run(['apply', '-f', 'part', '--yes'], changed);
    expect(applied.code).toBe(0);
    for (const each of [diff, applied]) expect(each.stdout + each.stderr).not.toContain('whsec_');
    expect((await client.webhooks.get(`uid:webhook-${n}`)).secret).toBe(secret);
    expect((await run(['diff', '-f', 'part'], changed)).code).toBe(0);
  }, 240_000);

  it('exports what makes no difference, without secrets', async () => {
    expect((await run(['export', '-f', 'exported.yaml'])).code).toBe(0);
    expect(readFileSync(join(scratch, 'exported.yaml'), 'utf8')).not.toContain('whsec_');
    const diff = await run(['diff', '-f', 'exported.yaml', '--json']);
    expect([diff.code, JSON.parse(diff.stdout)]).toEqual([
      0,
      { changes: [], unchanged: 200, notes: [] },
    ]);
  }, 240_000);

  it('makes event types before the policy that needs them, and says which fields of one change', async () => {
    const catalogue = (amount: string): string =>
      [
        'kind: Webhook\nuid: catalogue-hook\nappId: uid:catalogue-app',
        'url: https://example.com\neventTypes: [order/paid, order.*]\n',
      ].join('\n') +
      '---\nkind: App\nuid: catalogue-app\nprojectId: uid:catalogue\nname: App\n' +
      '---\nkind: Project\nuid: catalogue\nname: Catalogue\neventTypePolicy: validated\n' +
      `---\nkind: EventType\nname: order/paid\nprojectId: uid:catalogue\nexample: {amount: ${amount}}\n` +
      'schema: {required: [amount], properties: {amount: {type: number}}}\n' +
      '---\nkind: EventType\nname: order.sent\nprojectId: uid:catalogue\narchived: null\n';
    writeFileSync(join(scratch, 'catalogue.yaml'), catalogue('5'));
    const applied = await run(['apply', '-f', 'catalogue.yaml', '--yes']);
    expect([applied.code, applied.stdout]).toEqual([0, expect.stringContaining('6 of 6 changes')]);
    expect((await run(['diff', '-f', 'catalogue.yaml'])).code).toBe(0);
    expect((await client.projects.get('uid:catalogue')).eventTypePolicy).toBe('validated');

    writeFileSync(join(scratch, 'catalogue.yaml'), catalogue('six'));
    const diff = await run(['diff', '-f', 'catalogue.yaml']);
    expect([diff.code, diff.stdout]).toEqual([
      5,
      '~ EventType uid:catalogue/order/paid\n    example: {"amount":5} → {"amount":"six"}\n',
    ]);
    const refused = await run(['apply', '-f', 'catalogue.yaml', '--yes']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('example.amount')]);

    await run(['export', '--project', 'uid:catalogue', '-f', 'exported.yaml']);
    expect(readFileSync(join(scratch, 'exported.yaml'), 'utf8')).toContain('name: order/paid\n');
    const same = await run(['diff', '-f', 'exported.yaml', '--json']);
    expect([same.code, JSON.parse(same.stdout)]).toMatchObject([0, { unchanged: 5 }]);
    await client.projects.delete('uid:catalogue');
  }, 240_000);

  it('refuses without --yes, and prunes with a name', async () => {
    writeFileSync(
      join(scratch, 'team.yaml'),
      'kind: Project\nuid: team\nname: Team\n---\nkind: App\nuid: team-app\nprojectId: uid:team\nname: App\n',
    );
    const args = ['apply', '-f', 'team.yaml', '--name', 'team', '--prune'];
    expect((await run(args)).code).toBe(2);
    expect((await run([...args, '--yes'])).code).toBe(0);
    writeFileSync(join(scratch, 'team.yaml'), 'kind: Project\nuid: team\nname: Team\n');
    const diff = await run(['diff', ...args.slice(1)]);
    expect([diff.code, diff.stdout]).toEqual([5, '- App team-app\n']);
    expect((await run([...args, '--yes'])).code).toBe(0);
    expect(await counts()).toEqual([PROJECTS + 1, APPS, WEBHOOKS]);
  }, 240_000);
});
