import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type ConvoyData,
  type ConvoyEndpointRecord,
  startFakeConvoy,
} from '../../../../test/support/peers/fake-convoy.ts';
import { type FakePeer, without } from '../../../../test/support/peers/fake-peer.ts';
import type { DocumentOf } from '../plan/documents.ts';
import { mapEndpoint, readConvoy, secondsOf, type Signature } from './convoy.ts';
import type { Mapped, MappedWebhook } from './mapping.ts';
import { PeerApi } from './peer-api.ts';

const TARGET = { projectId: 'uid:convoy', environment: 'production', only: [] } as const;
const APP: DocumentOf<'App'> = {
  kind: 'App',
  uid: 'merchant-1',
  source: 'Convoy owner merchant-1',
  fields: { name: 'merchant-1', projectId: 'uid:convoy' },
};
const SIMPLE: Signature = { header: 'X-Convoy-Signature', hash: 'SHA256', encoding: 'hex' };
const ALL = { subscription: { uid: 'sub_1', filter_config: { event_types: ['*'] } }, filters: [] };
const ENDPOINT = {
  uid: '01HENDPOINT',
  name: 'Orders',
  url: 'https://example.com/hooks',
  owner_id: 'merchant-1',
  status: 'active',
  secrets: [{ uid: 's1', value: 'convoy-secret', expires_at: null }],
};

const peers: FakePeer[] = [];

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.close()));
});

async function readAll(
  data: ConvoyData,
  { only = [] as string[], pageSize = 100 } = {},
): Promise<Mapped[]> {
  const peer = await startFakeConvoy(data, { pageSize });
  peers.push(peer);
  const { url, token } = peer;
  const { signal } = new AbortController();
  const api = new PeerApi({ name: 'Convoy', url, token, signal, sleep: () => Promise.resolve() });
  const all: Mapped[] = [];
  for await (const each of readConvoy(api, data.project, { ...TARGET, only })) all.push(each);
  return all;
}

function map(
  endpoint: object,
  {
    subscriptions = [ALL] as Parameters<typeof mapEndpoint>[0]['subscriptions'],
    signature = SIMPLE,
  } = {},
): MappedWebhook {
  return mapEndpoint({ endpoint: { ...ENDPOINT, ...endpoint }, subscriptions }, signature, APP);
}

const kindsOf = ({ findings }: MappedWebhook): string[] => findings.map(({ kind }) => kind);

describe('an endpoint of Convoy', () => {
  it('keeps url, id, state, limits and the simple signature, so that its receiver needs no change', () => {
    const mapped = map({ rate_limit: 120, rate_limit_duration: 60, http_timeout: 10 });

    expect(mapped.document).toMatchObject({
      uid: '01HENDPOINT',
      fields: {
        appId: 'uid:merchant-1',
        name: 'Orders',
        url: 'https://example.com/hooks',
        authMethod: 'hmac',
        hmacHeader: 'X-Convoy-Signature',
        eventTypes: [],
        disabled: false,
        rateLimitPerSecond: 2,
        timeoutSeconds: 10,
      },
    });
    expect(mapped.document.fields.hmacSecret?.reveal()).toBe('convoy-secret');
    expect(mapped.findings).toEqual([]);
  });

  it('cuts a long description between characters', () => {
    const { document } = map({ description: `${'x'.repeat(499)}👍 and more` });

    expect(document.fields.metadata).toMatchObject({ description: `${'x'.repeat(499)}👍` });
  });

  it('reads the format of earlier versions', () => {
    const rest = without(ENDPOINT, 'name', 'url');
    const old = {
      ...rest,
      title: 'Old',
      target_url: 'https://old.example.com/',
      http_timeout: '10s',
    };
    const { document } = mapEndpoint({ endpoint: old, subscriptions: [ALL] }, SIMPLE, APP);

    expect(document.fields).toMatchObject({
      name: 'Old',
      url: 'https://old.example.com/',
      timeoutSeconds: 10,
    });
  });

  it.each([
    [{ advanced_signatures: true }, SIMPLE],
    [{}, { ...SIMPLE, hash: 'SHA512' }],
    [{}, { ...SIMPLE, encoding: 'base64' }],
  ])('keeps the secret and reports another signature %#', (endpoint, signature) => {
    const mapped = map(endpoint, { signature });

    expect(mapped.document.fields.hmacHeader).toBeUndefined();
    expect(mapped.document.fields.hmacSecret?.reveal()).toBe('convoy-secret');
    expect(kindsOf(mapped)).toEqual(['receiver']);
  });

  it('signs with the secret that does not end', () => {
    const secrets = [
      { uid: 's0', value: 'old', expires_at: '2999-01-01T00:00:00Z' },
      ...ENDPOINT.secrets,
    ];
    const mapped = map({ secrets });

    expect(mapped.document.fields.hmacSecret?.reveal()).toBe('convoy-secret');
    expect(kindsOf(mapped)).toEqual(['receiver']);
  });

  it('sends an API key, and user and password, as headers', () => {
    const byKey = map({
      authentication: { type: 'api_key', api_key: { header_name: 'X-Key', header_value: 'k' } },
    });
    const byPassword = map({
      authentication: { type: 'basic_auth', basic_auth: { username: 'me', password: 'pw' } },
    });

    expect(byKey.document.fields.customHeaders).toMatchObject([{ key: 'X-Key' }]);
    expect(byPassword.document.fields.customHeaders).toMatchObject([{ key: 'Authorization' }]);
    expect(byPassword.document.fields.hmacHeader).toBe('X-Convoy-Signature');
  });

  it('keeps OAuth 2 with a shared secret, and reports what signs then', () => {
    const oauth2 = { url: 'https://login.example.com/token', client_id: 'c', client_secret: 's' };
    const mapped = map({ authentication: { type: 'oauth2', oauth2 } });

    expect(mapped.document.fields).toMatchObject({
      authMethod: 'oauth2',
      oauth2TokenUrl: 'https://login.example.com/token',
      oauth2ClientId: 'c',
    });
    expect(mapped.document.fields.hmacHeader).toBeUndefined();
    expect(kindsOf(mapped)).toEqual(['receiver']);
  });

  it('has the event types of all its subscriptions', () => {
    const types = (...event_types: string[]) => ({
      subscription: { uid: 's', filter_config: { event_types } },
      filters: [],
    });

    const some = map({}, { subscriptions: [types('a'), types('b', 'a')] });
    const all = map({}, { subscriptions: [types('a'), types('*')] });
    expect(some.document.fields.eventTypes).toEqual(['a', 'b']);
    expect(all.document.fields.eventTypes).toEqual([]);
  });

  it.each([
    ['without a subscription', []],
    [
      'with a filter by a regular expression',
      [{ ...ALL, subscription: { filter_config: { filter: { body: { a: { $regex: 'b' } } } } } }],
    ],
    ['with a filter on headers', [{ ...ALL, filters: [{ event_type: 'a', headers: { b: 1 } }] }]],
    ['with a function', [{ ...ALL, subscription: { function: 'function transform() {}' } }]],
  ])('is held back %s', (_, subscriptions) => {
    expect(map({}, { subscriptions }).isHeldBack).toBe(true);
  });

  it('keeps its filter on the body, and reports what is different', () => {
    const filter_config = { event_types: ['*'], filter: { body: { 'order.amount': { $gt: 5 } } } };
    const mapped = map({}, { subscriptions: [{ ...ALL, subscription: { filter_config } }] });
    const filter = { payload: { order: { amount: { $gt: 5 } } } };
    expect(mapped).toMatchObject({ isHeldBack: false, document: { fields: { filter } } });
    expect(kindsOf(mapped)).toEqual(['changed']);
  });

  it.each(['inactive', 'paused', 'pending'])('comes over disabled when it is %s', (status) => {
    expect(map({ status }).document.fields.disabled).toBe(true);
  });

  it('does not bring the URL of a Slack channel over, which is a credential', () => {
    const mapped = map({ slack_webhook_url: 'https://hooks.slack.com/services/T/B/very-secret' });

    expect(JSON.stringify(mapped)).not.toContain('very-secret');
    expect(kindsOf(mapped)).toEqual(['leftOut']);
  });
});

describe('all of Convoy', () => {
  const endpoints: ConvoyEndpointRecord[] = Array.from({ length: 5 }, (_, nth) => {
    return {
      ...without(ENDPOINT, 'owner_id'),
      uid: `01H${nth}`,
      ...(nth > 0 && { owner_id: `merchant-${nth % 2}` }),
      subscriptions: [{ uid: `sub_${nth}`, filter_config: { event_types: ['*'] } }],
    };
  });

  it('is read over several pages, in the app of the owner or one of its own', async () => {
    const all = await readAll({ project: 'p1', endpoints }, { pageSize: 2 });

    const owners = all.flatMap((each) => (each.kind === 'Webhook' ? [each.app.uid] : []));
    expect(owners).toEqual(['01H0', 'merchant-1', 'merchant-0', 'merchant-1', 'merchant-0']);
  });

  it('has each owner once, before its endpoints, with another uid where its id is none', async () => {
    const owned = endpoints.slice(1).map((endpoint) => ({ ...endpoint, owner_id: 'auth0|17' }));
    const [app, ...others] = await readAll({ project: 'p1', endpoints: owned }, {});

    expect(app).toMatchObject({
      kind: 'App',
      document: { source: 'Convoy owner auth0|17' },
      findings: [{ kind: 'changed', detail: expect.stringMatching(/^auth0\|17 → uid:id-/) }],
    });
    expect(others.map(({ kind }) => kind)).toEqual(Array(4).fill('Webhook'));
  });

  it('is read for the owners that are named', async () => {
    const all = await readAll({ project: 'p1', endpoints }, { only: ['merchant-0'] });

    const uids = all.flatMap((each) => (each.kind === 'Webhook' ? [each.document.uid] : []));
    expect(uids).toEqual(['01H2', '01H4']);
  });

  it('signs as usual when the key may not read the project, and says so', async () => {
    const all = await readAll({ project: 'p1', endpoints, signature: null });

    expect(all[0]).toMatchObject({ kind: 'Unmapped', findings: [{ kind: 'byHand' }] });
    expect(all[2]).toMatchObject({ document: { fields: { hmacHeader: 'X-Convoy-Signature' } } });
  });
});

describe('durations', () => {
  it.each([
    [60, 60],
    ['10s', 10],
    ['1m0s', 60],
    ['1h30m', 5_400],
    ['', undefined],
    [null, undefined],
  ])('reads %s as %s s', (value, seconds) => {
    expect(secondsOf(value)).toBe(seconds);
  });
});
