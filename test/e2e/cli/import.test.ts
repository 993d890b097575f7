import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NotFoundError, Posthorn as Client, type WebhookWithAuth } from '@posthorn/client';
import { Webhook } from 'standardwebhooks';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImportReport } from '../../../apps/cli/src/import/importer.ts';
import { startFakeConvoy } from '../../support/peers/fake-convoy.ts';
import { startFakeOutpost } from '../../support/peers/fake-outpost.ts';
import type { FakePeer } from '../../support/peers/fake-peer.ts';
import { startFakeSvix, type SvixData } from '../../support/peers/fake-svix.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startStoreProxy } from '../../support/process/store-proxy.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const ROOT = join(import.meta.dirname, '../../..');
const MAIN = join(ROOT, 'apps/cli/src/main.ts');
const APPS = 8;
const ENDPOINTS_OF_APP = 50;
/** Of Svix, for webhooks whose deliveries are verified. */
const KEY = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';

let posthorn: OwnCompany;
let receiver: Receiver;
let home: string;
const peers: FakePeer[] = [];
const running = new Set<ChildProcess>();

beforeAll(async () => {
  [posthorn, receiver] = await Promise.all([joinShared('contract'), startReceiver()]);
  home = mkdtempSync(join(tmpdir(), 'posthorn-import-'));
  const command = join(home, 'posthorn');
  writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(command, 0o755);
}, 180_000);

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
  await Promise.all(peers.map((peer) => peer.close()));
  await receiver.close();
  await posthorn.stop();
});

function kept(peer: FakePeer): FakePeer {
  peers.push(peer);
  return peer;
}

interface Run {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface Running {
  kill: () => void;
  ended: Promise<Run>;
}

/** Starts a program with the address and key of Posthorn, and only these variables beside. */
function start(file: string, args: readonly string[], env: Record<string, string>): Running {
  const child = spawn(file, args, {
    cwd: home,
    env: {
      PATH: `${home}:${process.env.PATH ?? ''}`,
      HOME: home,
      POSTHORN_URL: posthorn.baseUrl,
      POSTHORN_API_KEY: posthorn.apiKey,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<Run>((resolve) => {
    child.on('close', (code) => {
      running.delete(child);
      resolve({ code, stdout, stderr });
    });
  });
  return { kill: () => child.kill('SIGKILL'), ended };
}

const variables = (svix: FakePeer): Record<string, string> => ({
  SVIX_TOKEN: svix.token,
  SVIX_URL: svix.url,
});

const importSvix = (svix: FakePeer, ...args: string[]): Running =>
  start(
    process.execPath,
    [MAIN, 'import', 'svix', '--url', svix.url, '--json', ...args],
    variables(svix),
  );

async function reportOf({ ended }: Running): Promise<ImportReport> {
  const { code, stdout, stderr } = await ended;
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as ImportReport;
}

const client = (): Client => new Client({ baseUrl: posthorn.baseUrl, apiKey: posthorn.apiKey });

async function isAppThere(appId: string): Promise<boolean> {
  try {
    await client().apps.get(appId);
    return true;
  } catch (error) {
    if (error instanceof NotFoundError) return false;
    throw error;
  }
}

/** Uid → how many webhooks have it. */
async function uidsOf(appUid: string): Promise<Map<string, number>> {
  const uids = new Map<string, number>();
  for await (const { uid } of client().webhooks.list({ appId: `uid:${appUid}` })) {
    uids.set(String(uid), (uids.get(String(uid)) ?? 0) + 1);
  }
  return uids;
}

function manyEndpoints(): SvixData {
  const apps = Array.from({ length: APPS }, (_, nth) => ({
    id: `app_${nth}`,
    uid: `company-${nth}`,
    name: `Company ${nth}`,
    endpoints: Array.from({ length: ENDPOINTS_OF_APP }, (__, each) => ({
      id: `ep_${nth}_${each}`,
      url: `${receiver.url}/${nth}/${each}`,
      key: KEY,
      headers: { 'X-Nth': String(each) },
    })),
  }));
  return { apps };
}

describe('posthorn import svix of 400 endpoints', () => {
  it('has each once after it was killed in the middle, and a further run changes nothing', async () => {
    const svix = kept(await startFakeSvix(manyEndpoints(), { pageSize: 40 }));
    // The sixth app has no endpoints for this one.
    const proxy = await startStoreProxy(svix.url);
    proxy.freezeAt('GET /api/v1/app/app_5/endpoint/ep_5_0/secret');
    const first = importSvix({ ...svix, url: proxy.url.replace(/\/$/, '') });
    await eventually('the third app', () => isAppThere('uid:company-2'));
    first.kill();
    expect(await first.ended).toMatchObject({ code: null });
    await proxy.close();

    const second = await reportOf(importSvix(svix));
    const counts = { read: APPS * ENDPOINTS_OF_APP, failed: 0, updated: 0 };
    expect(second.webhooks).toMatchObject(counts);
    // Something was there, and something was left to do.
    expect(second.webhooks.created).toBeGreaterThan(0);
    expect(second.webhooks.unchanged).toBeGreaterThan(0);

    for (let nth = 0; nth < APPS; nth += 1) {
      const uids = await uidsOf(`company-${nth}`);
      expect(uids.size).toBe(ENDPOINTS_OF_APP);
      expect([...uids.values()].every((count) => count === 1)).toBe(true);
    }
    const third = await reportOf(importSvix(svix));
    expect(third.webhooks).toMatchObject({ ...counts, created: 0, unchanged: counts.read });
    expect(third.apps).toMatchObject({ read: APPS, created: 0, updated: 0, unchanged: APPS });
  }, 300_000);
});

describe('posthorn import svix', () => {
  it('brings event types over with their newest schema, once', async () => {
    const schemas = { 1: { type: 'object' }, 2: { required: ['a'], examples: [{ a: 1 }] } };
    const paid = { name: 'order.paid', groupName: 'Orders', schemas };
    const wrong = { name: 'order.wrong', schemas: { 1: { unevaluatedItems: false } } };
    const old = { name: 'order.old', archived: true };
    const svix = kept(await startFakeSvix({ apps: [], eventTypes: [paid, wrong, old] }));
    const project = ['--project', 'uid:svix-types'];
    const planned = await importSvix(svix, ...project, '--dry-run').ended;
    expect(JSON.parse(planned.stdout)).toMatchObject({ eventTypes: { read: 3, created: 3 } });
    const first = await importSvix(svix, ...project).ended;
    expect(first.code).toBe(1);
    const { eventTypes, findings } = JSON.parse(first.stdout) as ImportReport;
    expect(eventTypes).toEqual({ read: 3, created: 2, updated: 0, unchanged: 0, failed: 1 });
    const objects = [{ object: 'Svix event type order.wrong', detail: expect.any(String) }];
    expect(findings).toMatchObject([{ kind: 'failed', count: 1, objects }]);
    expect(await client().eventTypes.get('uid:svix-types', 'order.paid')).toMatchObject({
      group: 'Orders',
      schema: schemas[2],
      example: { a: 1 },
    });
    const { archived } = await client().eventTypes.get('uid:svix-types', 'order.old');
    expect(archived).toBe(true);
    const second = await importSvix(svix, ...project).ended;
    expect(JSON.parse(second.stdout)).toMatchObject({ eventTypes: { unchanged: 2, failed: 1 } });
  });

  const endpoint = { url: 'https://example.com/hooks', key: KEY };

  it('signs as Svix did, with its headers', async () => {
    const endpoints = [{ ...endpoint, id: 'ep_signed', url: receiver.url }];
    const apps = [{ id: 'app_signed', name: 'Signed', endpoints }];
    await reportOf(importSvix(kept(await startFakeSvix({ apps }))));

    const message = { appId: 'uid:app_signed', rawPayload: '{"n":1.0}' };
    const { id } = await client().messages.send(message);
    await eventually('the delivery', () => receiver.of(id).length === 1);
    const [{ headers, body }] = receiver.of(id) as [Receiver['received'][number]];
    const verified = new Webhook(KEY).verify(body, {
      'webhook-id': String(headers['svix-id']),
      'webhook-timestamp': String(headers['svix-timestamp']),
      'webhook-signature': String(headers['svix-signature']),
    });
    expect(verified).toEqual({ n: 1 });
  });

  it('changes what has changed at Svix, its secret too', async () => {
    const changed = { ...endpoint, id: 'ep_changed' };
    const apps = [{ id: 'app_changed', name: 'Changed', endpoints: [changed] }];
    const svix = kept(await startFakeSvix({ apps }));
    await reportOf(importSvix(svix));
    const key = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    Object.assign(changed, { key, filterTypes: ['order.paid'], disabled: true });

    expect((await reportOf(importSvix(svix))).webhooks).toMatchObject({ updated: 1 });
    const shown = await client().webhooks.get('uid:ep_changed');
    expect(shown).toMatchObject({ secret: key, eventTypes: ['order.paid'], disabled: true });
  });

  it('keeps what was set by hand: hidden headers, and the state of what was held back', async () => {
    const sensitive = { ...endpoint, id: 'ep_by_hand', sensitive: ['Authorization'] };
    const heldBack = { ...sensitive, filterTypes: ['größer'] };
    const apps = [{ id: 'app_by_hand', name: 'x', endpoints: [heldBack] }];
    const svix = kept(await startFakeSvix({ apps }));
    await reportOf(importSvix(svix));
    const { webhooks } = client();
    expect(await webhooks.get('uid:ep_by_hand')).toMatchObject({ disabled: true });
    await webhooks.update('uid:ep_by_hand', {
      disabled: false,
      customHeaders: [{ key: 'Authorization', value: 'Bearer set-by-hand' }],
    });

    expect((await reportOf(importSvix(svix))).webhooks).toMatchObject({ unchanged: 1 });
    expect(await webhooks.get('uid:ep_by_hand')).toMatchObject({
      disabled: false,
      customHeaders: [{ key: 'Authorization', value: 'Bearer set-by-hand' }],
    });
  });

  it('gives the uid of an endpoint to one of two apps, and keeps it so', async () => {
    const apps = ['one', 'two'].map((uid) => ({
      id: `app_${uid}`,
      uid,
      name: uid,
      endpoints: [{ ...endpoint, id: `ep_${uid}`, uid: 'main' }],
    }));
    await reportOf(importSvix(kept(await startFakeSvix({ apps }))));
    const reversed = kept(await startFakeSvix({ apps: apps.toReversed() }));

    expect((await reportOf(importSvix(reversed))).webhooks).toMatchObject({ unchanged: 2 });
    expect([...(await uidsOf('one')).keys()]).toEqual(['main']);
    expect([...(await uidsOf('two')).keys()]).toEqual(['two.main']);
  });

  it('reports what it could not read or write, goes on, and exits with 1', async () => {
    const bad = { ...endpoint, id: 'ep_bad', url: 'ftp://example.com/' };
    const good = { ...endpoint, id: 'ep_good' };
    const unread = { ...endpoint, id: 'ep_unread' };
    const apps = [{ id: 'app_mixed', name: 'Mixed', endpoints: [unread, bad, good] }];
    const svix = kept(await startFakeSvix({ apps }));
    svix.refuse(/ep_unread\/secret/, 403);
    const { code, stdout, stderr } = await importSvix(svix).ended;

    expect({ code, stderr }).toMatchObject({ code: 1 });
    const { webhooks, findings } = JSON.parse(stdout) as ImportReport;
    expect(webhooks).toMatchObject({ read: 2, created: 1, failed: 1 });
    expect(findings.flatMap(({ objects }) => objects)).toEqual([
      {
        object: 'endpoint ep_unread of app app_mixed',
        detail: 'Svix answered 403 (GET /api/v1/app/app_mixed/endpoint/ep_unread/secret)',
      },
      { object: 'Svix endpoint ep_bad', detail: expect.stringContaining('url') },
    ]);
    expect(stdout + stderr).not.toContain(KEY.slice(10, 30));
  });

  it('ends with the report of what came over when the token is refused later', async () => {
    const apps = [{ id: 'app_gone', name: 'Gone', endpoints: [{ ...endpoint, id: 'ep_gone' }] }];
    const svix = kept(await startFakeSvix({ apps }));
    svix.refuse(/ep_gone\/headers/, 401);
    const { code, stdout, stderr } = await importSvix(svix).ended;

    expect(code).toBe(4);
    expect(stderr).toContain('Svix does not accept the token');
    expect(JSON.parse(stdout)).toMatchObject({ apps: { created: 1 }, webhooks: { read: 0 } });
  });

  it('changes nothing with --dry-run, and reports what it would do', async () => {
    const apps = [{ id: 'app_dry', name: 'Dry', endpoints: [{ ...endpoint, id: 'ep_dry' }] }];
    const report = await reportOf(importSvix(kept(await startFakeSvix({ apps })), '--dry-run'));

    expect(report).toMatchObject({
      isDryRun: true,
      apps: { read: 1, created: 1 },
      webhooks: { read: 1, created: 1 },
    });
    await expect(client().apps.get('uid:app_dry')).rejects.toMatchObject({ status: 404 });
  });
});

describe('posthorn import convoy', () => {
  it('signs simple signatures as Convoy did, and keeps the filter', async () => {
    const secrets = [{ uid: 's1', value: 'convoy-secret' }];
    const filter = { body: { n: { $lt: 2 } } };
    const endpoint = {
      uid: '01HSIGNED',
      name: 'Orders',
      owner_id: 'merchant-1',
      url: receiver.url,
      secrets,
      subscriptions: [{ uid: 'sub_1', filter_config: { event_types: ['*'], filter } }],
    };
    const convoy = kept(await startFakeConvoy({ project: 'p1', endpoints: [endpoint] }));
    const args = ['import', 'convoy', '--url', convoy.url, '--from-project', 'p1', '--json'];
    const env = { CONVOY_API_KEY: convoy.token };
    const run = (): Running => start(process.execPath, [MAIN, ...args], env);
    await reportOf(run());

    const { id } = await client().messages.send({ appId: 'uid:merchant-1', payload: { n: 1 } });
    await eventually('the delivery', () => receiver.of(id).length === 1);
    const [{ headers, body }] = receiver.of(id) as [Receiver['received'][number]];
    const expected = createHmac('sha256', 'convoy-secret').update(body).digest('hex');
    expect(headers['x-convoy-signature']).toBe(expected);
    const other = await client().messages.send({ appId: 'uid:merchant-1', payload: { n: 2 } });
    expect((await client().messages.get(other.id)).noTargetReason).toBe('filter');
    expect((await reportOf(run())).webhooks).toMatchObject({ unchanged: 1 });
  });
});

describe('posthorn import outpost', () => {
  it('keeps both kinds of secrets', async () => {
    const destination = { type: 'webhook', topics: ['*'], config: { url: receiver.url } };
    const destinations = [
      { ...destination, id: 'des_standard', credentials: { secret: KEY } },
      { ...destination, id: 'des_plain', credentials: { secret: 'plain-text-secret' } },
    ];
    const outpost = kept(await startFakeOutpost([{ id: 'tenant-1', destinations }]));
    const args = ['import', 'outpost', '--url', outpost.url, '--json'];
    const env = { OUTPOST_API_KEY: outpost.token };
    const run = (): Running => start(process.execPath, [MAIN, ...args], env);
    await reportOf(run());

    const { webhooks } = client();
    const hmacSecretOf = ({ authMethod }: WebhookWithAuth): unknown =>
      authMethod.method === 'hmac' && authMethod.hmacSecret;
    expect((await webhooks.get('uid:des_standard')).secret).toBe(KEY);
    expect(hmacSecretOf(await webhooks.get('uid:des_plain'))).toBe('plain-text-secret');
    expect((await reportOf(run())).webhooks).toMatchObject({ unchanged: 2 });
  });
});

describe('docs/migrate.md', () => {
  const page = readFileSync(join(ROOT, 'docs/migrate.md'), 'utf8');
  const blocksOf = (language: string): string[] =>
    [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, name, text = '']) =>
      name === language ? [text] : [],
    );

  async function startAll(): Promise<Record<string, string>> {
    const orders = { id: 'ep_orders', uid: 'orders', url: receiver.url, key: KEY };
    const apps = [{ id: 'app_orders', uid: 'customer-1', name: 'Orders', endpoints: [orders] }];
    const svix = kept(await startFakeSvix({ apps }));
    const convoy = kept(await startFakeConvoy({ project: 'p2', endpoints: [] }));
    const outpost = kept(await startFakeOutpost([]));
    return {
      ...variables(svix),
      CONVOY_API_KEY: convoy.token,
      CONVOY_URL: convoy.url,
      CONVOY_PROJECT: 'p2',
      OUTPOST_API_KEY: outpost.token,
      OUTPOST_URL: outpost.url,
    };
  }

  it('has only blocks that run here', () => {
    expect(page.match(/^```\w*$/gm)).toHaveLength(
      2 * (blocksOf('sh').length + blocksOf('ts').length),
    );
    expect([blocksOf('sh').length, blocksOf('ts').length]).toEqual([5, 2]);
  });

  it('has commands that work', async () => {
    const env = await startAll();
    for (const block of blocksOf('sh')) {
      const run = await start('bash', ['-euo', 'pipefail', '-c', block], env).ended;
      expect({ block, ...run }).toMatchObject({ code: 0 });
    }
    const last = blocksOf('sh').at(-1) ?? '';
    const { stdout } = await start('bash', ['-c', last], env).ended;
    const nothing = { created: 0, updated: 0, failed: 0 };
    expect(JSON.parse(stdout)).toMatchObject({ webhooks: { ...nothing, unchanged: 1 } });
  });

  it('has code that switches over and verifies', async () => {
    const [switchOver = '', verify = ''] = blocksOf('ts');
    // Inside the checkout, where the packages are found, and not in node_modules, where Node reads no TypeScript.
    mkdirSync(join(ROOT, '.local'), { recursive: true });
    const folder = mkdtempSync(join(ROOT, '.local/migrate-'));
    const calls = `
const event = { id: 'event-1', type: 'order.paid', payload: { id: 17 } };
const before = async (given) => ({ sentBefore: given.customer });
console.log(JSON.stringify(await sendEvent({ ...event, customer: 'customer-2' }, before)));
const sent = await sendEvent({ ...event, customer: 'customer-1' }, before);
const again = await sendEvent({ ...event, customer: 'customer-1' }, before);
console.log(JSON.stringify([sent.deliveries.length, sent.id === again.id]));
`;
    try {
      writeFileSync(join(folder, 'switch.ts'), switchOver + calls);
      writeFileSync(join(folder, 'verify.ts'), verify);
      const run = (name: string): Promise<Run> =>
        start(process.execPath, [join(folder, name)], {}).ended;
      expect(await run('switch.ts')).toMatchObject({
        code: 0,
        stdout: '{"sentBefore":"customer-2"}\n[1,true]\n',
      });
      expect(await run('verify.ts')).toMatchObject({ code: 0, stdout: 'delivered\n' });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
