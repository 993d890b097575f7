import { afterEach, describe, expect, it } from '@jest/globals';
import type { FakePeer } from '../../../../test/support/peers/fake-peer.ts';
import {
  type OutpostDestinationRecord,
  startFakeOutpost,
} from '../../../../test/support/peers/fake-outpost.ts';
import type { DocumentOf } from '../plan/documents.ts';
import type { Mapped, MappedWebhook } from './mapping.ts';
import { mapDestination, readOutpost } from './outpost.ts';
import { PeerApi } from './peer-api.ts';

const TARGET = { projectId: 'uid:outpost', environment: 'production', only: [] } as const;
const APP: DocumentOf<'App'> = {
  kind: 'App',
  uid: 'acme',
  source: 'Outpost tenant acme',
  fields: { name: 'acme', projectId: 'uid:outpost' },
};
const SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
const DESTINATION: OutpostDestinationRecord = {
  id: 'des_1',
  type: 'webhook',
  topics: ['*'],
  config: { url: 'https://example.com/hooks' },
  credentials: { secret: SECRET },
  target: 'example.com',
};

const peers: FakePeer[] = [];

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.close()));
});

async function readAll(
  tenants: Parameters<typeof startFakeOutpost>[0],
  {
    only = [] as string[],
    ...options
  }: { only?: string[]; pageSize?: number; canList?: boolean } = {},
): Promise<Mapped[]> {
  const peer = await startFakeOutpost(tenants, options);
  peers.push(peer);
  const { url, token } = peer;
  const { signal } = new AbortController();
  const api = new PeerApi({ name: 'Outpost', url, token, signal, sleep: () => Promise.resolve() });
  const all: Mapped[] = [];
  for await (const each of readOutpost(api, { ...TARGET, only })) all.push(each);
  return all;
}

function map(destination: object): MappedWebhook {
  const mapped = mapDestination({ ...DESTINATION, ...destination }, 'acme', APP);
  if (mapped.kind !== 'Webhook') throw new Error('Not mapped to a webhook');
  return mapped;
}

describe('a webhook destination of Outpost', () => {
  it('keeps url, id, topics, state, headers, metadata and secret', () => {
    const { document } = map({
      topics: ['order.paid'],
      disabled_at: '2026-01-01T00:00:00Z',
      config: { ...DESTINATION.config, custom_headers: '{"x-api-key":"k","content-type":"x"}' },
      metadata: { team: 'one' },
    });

    expect(document).toMatchObject({
      uid: 'des_1',
      fields: {
        appId: 'uid:acme',
        name: 'example.com',
        url: 'https://example.com/hooks',
        eventTypes: ['order.paid'],
        disabled: true,
        customHeaders: [{ key: 'x-api-key' }],
        metadata: { team: 'one' },
      },
    });
    expect(document.fields.secret?.reveal()).toBe(SECRET);
    expect(document.fields.hmacSecret).toBeUndefined();
  });

  it('keeps a secret of the default mode as the key of the hex signature', () => {
    const { document, findings } = map({ credentials: { secret: 'plain-text' } });

    expect(document.fields.hmacSecret?.reveal()).toBe('plain-text');
    expect(document.fields.secret).toBeUndefined();
    expect(findings).toMatchObject([{ kind: 'receiver' }]);
  });

  it('reports a rotation under way', () => {
    const { findings } = map({ credentials: { secret: SECRET, previous_secret: 'whsec_old' } });

    expect(findings.map(({ about }) => about)).toContainEqual(expect.stringContaining('rotation'));
  });

  it('keeps its filter, under the names of this API', () => {
    const data = { amount: { $gte: 100 } };
    const filter = { data, $not: { topic: 'order.test' }, $or: [{ topic: 'a' }, { data: {} }] };
    const { document, isHeldBack } = map({ filter });
    expect(document.fields.filter).toEqual({
      payload: data,
      $not: { eventType: 'order.test' },
      $or: [{ eventType: 'a' }, { payload: {} }],
    });
    expect(isHeldBack).toBe(false);
  });

  it.each([{}, null])('has no filter with %j', (filter) => {
    const { document, isHeldBack } = map({ filter });
    expect([document.fields.filter, isHeldBack]).toEqual([null, false]);
  });

  it.each([
    ['metadata', { metadata: { plan: 'gold' } }],
    ['an id in $and', { $and: [{ data: {} }, { id: 'evt_1' }] }],
    ['a time in $not', { $not: { time: { $exist: true } } }],
    ['more bytes than here', { data: { text: 'x'.repeat(4_096) } }],
  ])('is held back when its filter is about %s', (_, filter) => {
    const { document, isHeldBack, findings } = map({ filter });
    expect([document.fields.filter, isHeldBack]).toEqual([null, true]);
    expect(findings.map(({ kind }) => kind)).toContain('heldBack');
  });

  it('reports delivery metadata and headers that are no JSON', () => {
    const config = { ...DESTINATION.config, custom_headers: '{"secret' };
    const { findings } = map({ delivery_metadata: { region: 'eu' }, config });

    expect(findings).toContainEqual(expect.objectContaining({ kind: 'leftOut', detail: 'region' }));
    expect(findings).toContainEqual(expect.objectContaining({ kind: 'failed' }));
    expect(JSON.stringify(findings)).not.toContain('{\\"secret');
  });
});

describe('all of Outpost', () => {
  const TENANTS = Array.from({ length: 5 }, (_, nth) => ({
    id: nth === 0 ? 'a tenant/with spaces' : `tenant-${nth}`,
    destinations: Array.from({ length: nth }, (__, each) => ({
      ...DESTINATION,
      id: `des_${nth}_${each}`,
      ...(each === 3 && { type: 'aws_sqs' }),
    })),
  }));

  it('is read over several pages, each tenant before its destinations', async () => {
    const all = await readAll(TENANTS, { pageSize: 2 });

    const apps = all.flatMap((each) => (each.kind === 'App' ? [each.document.uid] : []));
    expect(apps).toEqual([
      expect.stringMatching(/^id-[0-9a-f]{40}$/),
      ...TENANTS.slice(1).map(({ id }) => id),
    ]);
    expect(all.filter(({ kind }) => kind === 'Webhook')).toHaveLength(9);
  });

  it('reports destinations that are no webhooks', async () => {
    const all = await readAll(TENANTS);

    expect(all.at(-1)).toEqual({
      kind: 'Unmapped',
      object: 'destination des_4_3 of tenant tenant-4',
      findings: [{ kind: 'leftOut', about: 'destinations of the type aws_sqs' }],
    });
  });

  it('is read by tenants that are named where it cannot list them', async () => {
    await expect(readAll(TENANTS, { canList: false })).rejects.toThrow(
      'Name the tenants with --only',
    );

    const all = await readAll(TENANTS, { canList: false, only: ['tenant-2'] });
    expect(all.map(({ kind }) => kind)).toEqual(['App', 'Webhook', 'Webhook']);
  });
});
