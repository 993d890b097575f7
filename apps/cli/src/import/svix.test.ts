import { afterEach, describe, expect, it } from '@jest/globals';
import type { FakePeer } from '../../../../test/support/peers/fake-peer.ts';
import { startFakeSvix, type SvixData } from '../../../../test/support/peers/fake-svix.ts';
import { type DocumentOf, Secret } from '../plan/documents.ts';
import type { Mapped, MappedWebhook } from './mapping.ts';
import { PeerApi } from './peer-api.ts';
import { mapEndpoint, readSvix, svixUrlOf } from './svix.ts';

const TARGET = { projectId: 'uid:svix', environment: 'production', only: [] } as const;
const APP: DocumentOf<'App'> = {
  kind: 'App',
  uid: 'customer-1',
  source: 'Svix app app_1',
  fields: { name: 'Customer 1', projectId: 'uid:svix' },
};
const KEY = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
const ENDPOINT = { id: 'ep_1', url: 'https://example.com/hooks', description: '', metadata: {} };

const peers: FakePeer[] = [];

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.close()));
});

async function start(data: SvixData, pageSize?: number) {
  const peer = await startFakeSvix(data, pageSize === undefined ? {} : { pageSize });
  peers.push(peer);
  const { url, token } = peer;
  const { signal } = new AbortController();
  return {
    peer,
    api: new PeerApi({ name: 'Svix', url, token, signal, sleep: () => Promise.resolve() }),
  };
}

async function readAll(mapped: AsyncIterable<Mapped>): Promise<Mapped[]> {
  const all: Mapped[] = [];
  for await (const each of mapped) all.push(each);
  return all;
}

function map(endpoint: object, read: Partial<Parameters<typeof mapEndpoint>[0]> = {}) {
  const given = { secret: KEY, headers: {}, transformation: {}, ...read };
  return mapEndpoint({ ...given, endpoint: { ...ENDPOINT, ...endpoint } }, APP);
}

const revealed = ({ document }: MappedWebhook): string | null | undefined =>
  document.fields.secret?.reveal();

describe('an endpoint of Svix', () => {
  it('keeps url, uid, secret, types, state, rate and metadata, and the headers of its library', () => {
    const mapped = map({
      uid: 'orders',
      description: 'Orders',
      filterTypes: ['order.paid', 'order.sent'],
      disabled: true,
      throttleRate: 20,
      metadata: { plan: 'gold' },
    });

    expect(mapped.document).toMatchObject({
      kind: 'Webhook',
      uid: 'orders',
      fields: {
        appId: 'uid:customer-1',
        url: 'https://example.com/hooks',
        name: 'Orders',
        signatureHeaders: ['webhook', 'svix'],
        eventTypes: ['order.paid', 'order.sent'],
        disabled: true,
        rateLimitPerSecond: 20,
        metadata: { plan: 'gold' },
      },
    });
    expect(revealed(mapped)).toBe(KEY);
    expect(mapped).toMatchObject({ isHeldBack: false, findings: [] });
  });

  it('has its id as uid when it has none of its own', () => {
    expect(map({ uid: null }).document).toMatchObject({ uid: 'ep_1', fields: { name: 'ep_1' } });
  });

  it('shows its secret nowhere but to the API', () => {
    const mapped = map({}, { headers: { headers: { 'X-Key': 'very-secret' }, sensitive: [] } });

    expect(JSON.stringify(mapped)).not.toMatch(/MDEyMzQ1|very-secret/);
    expect(mapped.document.fields.customHeaders).toMatchObject([{ key: 'X-Key' }]);
  });

  it('takes a secret without its prefix and padding', () => {
    expect(revealed(map({}, { secret: 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY' }))).toBe(KEY);
  });

  it('has no secret that Posthorn does not take, and says what the receiver has to do', () => {
    const mapped = map({}, { secret: `whsec_${Buffer.alloc(75, 7).toString('base64')}` });

    expect(mapped.document.fields.secret).toBeUndefined();
    expect(mapped.findings).toMatchObject([{ kind: 'receiver' }]);
  });

  it('signs with the key of the company where Svix signs asymmetrically', () => {
    const mapped = map({}, { secret: 'whpk_MCowBQYDK2VwAyEA' });

    expect(mapped.document.fields).toMatchObject({ signatureAlgorithm: 'ed25519' });
    expect(mapped.document.fields.secret).toBeUndefined();
    expect(mapped.findings).toMatchObject([{ kind: 'receiver' }]);
  });

  it('is the same whatever order its sets and maps have', () => {
    const one = map(
      { filterTypes: ['b', 'a'], channels: ['d', 'c'], metadata: { x: '1', y: '2' } },
      { headers: { headers: { 'X-B': '1', 'x-a': '2' } } },
    );
    const other = map(
      { filterTypes: ['a', 'b'], channels: ['c', 'd'], metadata: { y: '2', x: '1' } },
      { headers: { headers: { 'x-a': '2', 'X-B': '1' } } },
    );

    expect(one.document).toEqual(other.document);
    expect(one.document.fields.eventTypes).toEqual(['a', 'b']);
  });

  it('selects channels by a filter on tags, and they stay in its metadata', () => {
    const mapped = map({ channels: ['project_1', 'group_2'] });

    expect(mapped.isHeldBack).toBe(false);
    expect(mapped.document.fields.filter).toEqual({ tags: { $or: ['group_2', 'project_1'] } });
    expect(mapped.findings).toMatchObject([{ kind: 'changed', detail: 'group_2, project_1' }]);
    expect(mapped.document.fields.metadata).toEqual({ svixChannels: 'group_2,project_1' });
  });

  it('is held back when a transformation is on', () => {
    expect(map({}, { transformation: { enabled: true, code: 'x' } }).isHeldBack).toBe(true);
    expect(map({}, { transformation: { enabled: false, code: 'x' } }).isHeldBack).toBe(false);
  });

  it('is held back when none of its event types can be had: an empty list would select all', () => {
    const mapped = map({ filterTypes: ['größer'] });

    expect(mapped).toMatchObject({ isHeldBack: true, document: { fields: { eventTypes: [] } } });
    expect(mapped.findings.map(({ kind }) => kind)).toEqual(['leftOut', 'heldBack']);
  });

  it('leaves out headers that Posthorn sets, and names those whose values are hidden', () => {
    const headers = { 'X-Tenant': 'a', Host: 'b', 'svix-extra': 'c', 'X-Bad': ' d' };
    const mapped = map({}, { headers: { headers, sensitive: ['Authorization'] } });

    expect(mapped.document.fields.customHeaders).toHaveLength(1);
    expect(mapped.keptHeaders).toEqual(['Authorization']);
    expect(mapped.findings).toMatchObject([
      { kind: 'leftOut', detail: 'Host' },
      { kind: 'leftOut', detail: 'svix-extra' },
      { kind: 'leftOut', detail: 'X-Bad' },
      { kind: 'byHand', detail: 'Authorization' },
    ]);
  });

  it('sends user and password of its URL as the header that they stand for', () => {
    const { fields } = map({ url: 'https://me:pass%20word@example.com/x#part' }).document;

    expect(fields.url).toBe('https://example.com/x');
    const [header] = fields.customHeaders ?? [];
    expect(header?.key).toBe('Authorization');
    expect(header?.value).toBeInstanceOf(Secret);
    expect((header?.value as Secret).reveal()).toBe(`Basic ${btoa('me:pass word')}`);
  });

  it('has no more headers than Posthorn takes, also with user and password in its URL', () => {
    const names = Array.from({ length: 20 }, (_, nth) => [`X-Nth-${nth}`, 'a']);
    const headers = { headers: Object.fromEntries(names) as Record<string, string> };
    const mapped = map({ url: 'https://me:password@example.com/' }, { headers });

    expect(mapped.document.fields).toMatchObject({ url: 'https://example.com/' });
    expect(mapped.document.fields.customHeaders).toHaveLength(20);
    expect(mapped.findings).toMatchObject([
      { kind: 'leftOut', about: 'user and password in the URL, beside 20 headers' },
    ]);
  });

  it('has no half of a character in the channels of its metadata', () => {
    const { metadata } = map({ channels: ['a', '😀'.repeat(600)] }).document.fields;

    expect(metadata).toEqual({ svixChannels: `a,${'😀'.repeat(498)}` });
  });

  it('keeps the whole of a long description in its metadata', () => {
    const { fields } = map({ description: 'd'.repeat(300) }).document;

    expect(fields.name).toHaveLength(100);
    expect(fields.metadata).toEqual({ description: 'd'.repeat(300) });
  });
});

describe('all of Svix', () => {
  const DATA: SvixData = {
    eventTypes: [{ name: 'order.paid' }, { name: 'größe' }],
    apps: Array.from({ length: 5 }, (_, nth) => ({
      id: `app_${nth}`,
      uid: nth === 0 ? null : `customer-${nth}`,
      name: `Customer ${nth}`,
      metadata: { nth: String(nth) },
      endpoints: Array.from({ length: nth }, (__, each) => ({
        ...ENDPOINT,
        id: `ep_${nth}_${each}`,
        key: KEY,
      })),
      destinations: nth === 1 ? [{ id: 'dest_1', type: 'sqs' }] : [],
    })),
  };

  it('is read over several pages, each app before its endpoints', async () => {
    const { api } = await start(DATA, 2);
    const all = await readAll(readSvix(api, TARGET));

    const order = all.flatMap((each) => ('document' in each ? [each.document.uid] : []));
    const expected = DATA.apps.flatMap(({ id, uid, endpoints }) => [
      uid ?? id,
      ...endpoints.map((endpoint) => endpoint.id),
    ]);
    expect(order).toEqual(expected);
  });

  it('has its event types, and reports those with other names and other destinations', async () => {
    const { api } = await start(DATA);
    const all = await readAll(readSvix(api, TARGET));

    expect(all[0]).toMatchObject({ kind: 'EventType', name: 'order.paid' });
    expect(all.flatMap(({ findings }) => findings)).toMatchObject([
      { kind: 'leftOut', detail: 'größe' },
      { kind: 'leftOut', about: 'destinations of the type sqs', detail: 'dest_1' },
    ]);
  });

  it('reads only the named apps, by id or uid, and reports one that there is not', async () => {
    const { api } = await start(DATA);
    const only = ['customer-2', 'app_0', 'nobody'];
    const all = await readAll(readSvix(api, { ...TARGET, only }));

    const apps = all.flatMap((each) => (each.kind === 'App' ? [each.document.uid] : []));
    expect(apps).toEqual(['customer-2', 'app_0']);
    expect(all.at(-1)).toMatchObject({ kind: 'Unmapped', findings: [{ kind: 'failed' }] });
  });

  it('goes on after an endpoint that cannot be read', async () => {
    const { api, peer } = await start(DATA);
    peer.refuse(/ep_2_1\/secret$/, 500);
    const all = await readAll(readSvix(api, TARGET));

    expect(all.filter(({ kind }) => kind === 'Webhook')).toHaveLength(9);
    expect(all.flatMap(({ findings }) => findings.filter(({ kind }) => kind === 'failed'))).toEqual(
      [
        {
          kind: 'failed',
          about: 'endpoints',
          detail: 'Svix answered 500 (GET /api/v1/app/app_2/endpoint/ep_2_1/secret)',
        },
      ],
    );
  });

  it('goes on after an app whose endpoints cannot be read', async () => {
    const { api, peer } = await start(DATA);
    peer.refuse(/app_3\/endpoint$/, 403);
    const all = await readAll(readSvix(api, TARGET));

    expect(all.filter(({ kind }) => kind === 'App')).toHaveLength(5);
    expect(all.filter(({ kind }) => kind === 'Webhook')).toHaveLength(7);
  });

  it('is read from servers without transformations and destinations', async () => {
    const { api, peer } = await start(DATA);
    peer.refuse(/transformation$|destination$/, 404);
    const all = await readAll(readSvix(api, TARGET));

    expect(all.filter(({ kind }) => kind === 'Webhook')).toHaveLength(10);
    expect(all.flatMap(({ findings }) => findings)).toMatchObject([{ detail: 'größe' }]);
  });

  it('is read through limits and resets', async () => {
    const { api, peer } = await start(DATA, 2);
    peer.answerNext({ status: 429, retryAfter: '0' }, 10);
    peer.resetNext(4);
    const all = await readAll(readSvix(api, TARGET));

    expect(all.filter(({ kind }) => kind === 'Webhook')).toHaveLength(10);
  });
});

describe('the address of Svix', () => {
  it('is that of the region of the token', () => {
    expect(svixUrlOf('sk_abc.eu')).toBe('https://api.eu.svix.com');
    expect(svixUrlOf('sk_abc.moon')).toBe('https://api.svix.com');
  });
});
