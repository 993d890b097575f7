import { describe, expect, it } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ModelApi } from '../../../../test/support/cli/model-api.ts';
import { type DocumentOf, Secret } from '../plan/documents.ts';
import type { Present, PresentObject } from '../plan/plan.ts';
import { mapEndpoint as mapConvoyEndpoint, mapOwner } from './convoy.ts';
import { Importer, type ImportReport, settleAll } from './importer.ts';
import type { Mapped, MappedApp, MappedWebhook } from './mapping.ts';
import { mapDestination, mapTenant } from './outpost.ts';
import { mapApp, mapEndpoint as mapSvixEndpoint } from './svix.ts';

const appOf = (uid: string): DocumentOf<'App'> => ({
  kind: 'App',
  uid,
  source: uid,
  fields: { name: uid, projectId: 'uid:svix' },
});

function webhookOf(
  appUid: string,
  uid: string,
  { disabled = false, ...more }: Partial<MappedWebhook> & { disabled?: boolean } = {},
): MappedWebhook {
  const fields = {
    appId: `uid:${appUid}`,
    url: 'https://example.com/',
    disabled,
    customHeaders: [{ key: 'X-Read', value: new Secret('test', 'read') }],
  };
  return {
    kind: 'Webhook',
    document: { kind: 'Webhook', uid, source: uid, fields },
    app: appOf(appUid),
    qualifiedUid: `${appUid}.${uid}`,
    isHeldBack: false,
    keptHeaders: [],
    findings: [],
    ...more,
  };
}

/** Apps have the id `id-` and their uid. */
function presentWith(...objects: PresentObject[]): Present {
  return { objects, idOf: (_, reference) => reference.replace('uid:', 'id-') };
}

const there = (uid: string, appId: string, fields: object = {}): PresentObject => ({
  kind: 'Webhook',
  id: `wh_${uid}`,
  uid,
  fields: { appId, ...fields },
});

const uidsOf = (webhooks: MappedWebhook[], present: Present): string[] =>
  settleAll(webhooks, present).map(({ uid }) => uid);

describe('the uid of a webhook', () => {
  const [one, two] = [webhookOf('one', 'main'), webhookOf('two', 'main')];

  it('goes to the first of two apps that have it', () => {
    expect(uidsOf([one, two], presentWith())).toEqual(['main', 'two.main']);
  });

  it('stays with the app that has it, whatever comes first', () => {
    const present = presentWith(there('main', 'id-one'), there('two.main', 'id-two'));

    expect(uidsOf([two, one], present)).toEqual(['two.main', 'main']);
  });

  it('has the app before it while a webhook of another app has it', () => {
    expect(uidsOf([two], presentWith(there('main', 'id-one')))).toEqual(['two.main']);
  });

  it('keeps the app before it when the other webhook is gone', () => {
    expect(uidsOf([two], presentWith(there('two.main', 'id-two')))).toEqual(['two.main']);
  });

  it('is its own while a webhook of another app has the longer one', () => {
    expect(uidsOf([two], presentWith(there('two.main', 'id-other')))).toEqual(['main']);
  });
});

describe('a webhook that is held back', () => {
  const heldBack = webhookOf('one', 'main', { isHeldBack: true });
  const disabledOf = (webhook: MappedWebhook, present: Present): unknown =>
    settleAll([webhook], present)[0]?.fields.disabled;

  it('is created disabled', () => {
    expect(disabledOf(heldBack, presentWith())).toBe(true);
  });

  it('keeps the state that somebody gave it', () => {
    const enabled = presentWith(there('main', 'id-one', { disabled: false }));
    const disabled = presentWith(there('main', 'id-one', { disabled: true }));

    expect([disabledOf(heldBack, enabled), disabledOf(heldBack, disabled)]).toEqual([false, true]);
  });

  it('is disabled when the other service has disabled it', () => {
    const gone = webhookOf('one', 'main', { isHeldBack: true, disabled: true });

    expect(disabledOf(gone, presentWith(there('main', 'id-one', { disabled: false })))).toBe(true);
  });
});

describe('headers whose values cannot be read', () => {
  it('stay as the webhook has them, beside those that were read', () => {
    const customHeaders = [
      { key: 'authorization', value: 'by hand' },
      { key: 'X-Gone', value: 'old' },
    ];
    const present = presentWith(there('main', 'id-one', { customHeaders }));
    const webhook = webhookOf('one', 'main', { keptHeaders: ['Authorization'] });

    expect(settleAll([webhook], present)[0]?.fields.customHeaders).toMatchObject([
      { key: 'authorization', value: 'by hand' },
      { key: 'X-Read' },
    ]);
  });
});

const TARGET = { projectId: 'uid:moved', environment: 'production', only: [] } as const;
const PROJECT: DocumentOf<'Project'> = {
  kind: 'Project',
  uid: 'moved',
  source: '--project',
  fields: { name: 'Moved', environment: 'production' },
};

describe('an id that is no uid', () => {
  const app = appOf('customer-1');
  const signature = { header: 'X-Convoy-Signature', hash: 'SHA256', encoding: 'hex' };
  const svix = { secret: null, headers: {}, transformation: {} };
  const mappers: [string, (id: string) => Mapped][] = [
    ['a tenant of Outpost', (id) => mapTenant({ id }, TARGET)],
    ['a destination of Outpost', (id) => mapDestination({ id, type: 'webhook' }, 'a', app)],
    ['an owner of Convoy', (id) => mapOwner({ uid: '01H', owner_id: id }, TARGET)],
    [
      'an endpoint of Convoy',
      (id) => mapConvoyEndpoint({ endpoint: { uid: id }, subscriptions: [] }, signature, app),
    ],
    ['an app of Svix', (uid) => mapApp({ id: 'app_1', uid }, TARGET)],
    [
      'an endpoint of Svix',
      (uid) => mapSvixEndpoint({ ...svix, endpoint: { id: 'ep_1', uid } }, app),
    ],
  ];

  it.each(mappers)('is named with the uid of %s', (_what, map) => {
    for (const id of ['auth0|17', 'anna@example.com', 'acme/eu', 'a'.repeat(129)]) {
      const mapped = map(id) as MappedApp;
      const detail = `${id} → uid:${mapped.document.uid}`;
      const about = expect.stringContaining('uid');
      expect(mapped.findings).toContainEqual({ kind: 'changed', about, detail });
    }
  });

  it.each(mappers)('is not named when it is the uid of %s', (_what, map) => {
    const { findings } = map('customer-17') as MappedApp;
    expect(findings.filter(({ about }) => about.includes('uid'))).toEqual([]);
  });

  it('becomes a uid that docs/migrate.md computes', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/migrate.md'), 'utf8');
    const [, command = ''] = /^(printf '%s' .*)$/m.exec(page) ?? [];
    const uid = execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim();
    expect(uid).toBe(mapTenant({ id: 'auth0|17' }, TARGET).document.uid);
  });
});

const importNothing = () => {
  throw new Error('There are no event types');
};

async function importInto(model: ModelApi, mapped: readonly Mapped[]): Promise<ImportReport> {
  const { fetch } = model;
  const api = new Posthorn({ apiKey: 'phk_1', baseUrl: 'http://model', fetch, maxRetries: 0 });
  const importer = new Importer({
    importWebhooks: importNothing,
    api,
    from: 'Test',
    projectId: TARGET.projectId,
    project: PROJECT,
    isDryRun: false,
    onProgress: () => undefined,
  });
  await importer.run(Readable.from(mapped) as AsyncIterable<Mapped>);
  return importer.report;
}

it('names the uid of a webhook that has its app before it', async () => {
  const [one, two] = [webhookOf('one', 'main'), webhookOf('two', 'main')];
  const { findings } = await importInto(new ModelApi(), [one, two].map(withSource));
  const objects = [{ object: 'main of two', detail: 'main → uid:two.main' }];
  expect(findings).toContainEqual(expect.objectContaining({ kind: 'changed', objects }));
});

const withSource = (mapped: MappedWebhook): MappedWebhook => ({
  ...mapped,
  document: { ...mapped.document, source: `main of ${mapped.app.uid}` },
});

const isWrite = (request: string): boolean => !request.startsWith('GET ');

/** Texts with what names, headers and metadata may have at other services. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 150 }),
  fc.string({ maxLength: 600 }),
  fc.constantFrom('', ' ', 'x', '__proto__', 'Host', 'webhook-id', 'svix-id', 'é'.repeat(101)),
);
const anyTexts = fc.array(fc.oneof(anyText, fc.constantFrom('a', 'b.c', 'order/paid')));
const anyMap = fc.dictionary(anyText, anyText, { maxKeys: 25 });
const anySecret = fc.oneof(
  fc.uint8Array({ maxLength: 80 }).map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`),
  fc.constant('whpk_MCowBQYDK2VwAyEA'),
  anyText,
);
const anyUrl = fc.constantFrom(
  'https://example.com',
  'https://example.com/a b?c=|#d',
  'https://me:p%C3%A4ss@example.com/',
  'https://a%zz:@example.com/#d',
);

const svixEndpoint = fc.record({
  endpoint: fc.record({
    uid: fc.option(fc.oneof(anyText, fc.constant('main'))),
    url: anyUrl,
    description: anyText,
    filterTypes: fc.option(anyTexts),
    channels: fc.option(anyTexts),
    throttleRate: fc.option(fc.integer({ min: 0, max: 65_535 })),
    metadata: anyMap,
    disabled: fc.boolean(),
  }),
  secret: anySecret,
  headers: fc.record({ headers: anyMap, sensitive: anyTexts }),
  transformation: fc.record({ enabled: fc.boolean() }),
});

const mapSvix = fc.array(svixEndpoint, { minLength: 1, maxLength: 6 }).map((endpoints) =>
  endpoints.map((read, nth) => {
    const app = mapApp({ id: `app_${nth % 2}`, name: 'An app' }, TARGET).document;
    // Unique in the app: only the first of each has one.
    const { uid, ...endpoint } = read.endpoint;
    const own = { ...endpoint, id: `ep_${nth}`, uid: nth < 2 ? uid : null };
    return mapSvixEndpoint({ ...read, endpoint: own }, app);
  }),
);

const convoyEndpoint = fc.record({
  name: anyText,
  url: anyUrl,
  owner_id: fc.option(anyText),
  description: anyText,
  status: fc.constantFrom('active', 'paused'),
  secrets: fc.array(fc.record({ value: anyText }), { maxLength: 1 }),
  advanced_signatures: fc.boolean(),
  rate_limit: fc.integer({ min: -1, max: 100_000 }),
  rate_limit_duration: fc.integer({ min: 0, max: 120 }),
  http_timeout: fc.integer({ min: 0, max: 100 }),
  support_email: anyText,
  authentication: fc.option(
    fc.record({
      type: fc.constantFrom('api_key', 'basic_auth', 'oauth2'),
      api_key: fc.record({ header_name: anyText, header_value: anyText }),
      basic_auth: fc.record({ username: anyText, password: anyText }),
      oauth2: fc.record({
        url: fc.constantFrom('', 'https://login.example.com/token'),
        client_id: fc.constantFrom('', 'a client'),
        client_secret: fc.constantFrom('', 'sécret'),
        scope: fc.constantFrom('', ' orders.read  orders.write '),
      }),
    }),
  ),
});

const mapConvoy = fc.array(convoyEndpoint, { minLength: 1, maxLength: 6 }).map((endpoints) =>
  endpoints.map((read, nth) => {
    const endpoint = { ...read, uid: `01H${nth}` };
    const signature = { header: 'X-Convoy-Signature', hash: 'SHA256', encoding: 'hex' };
    return mapConvoyEndpoint(
      { endpoint, subscriptions: [] },
      signature,
      mapOwner(endpoint, TARGET).document,
    );
  }),
);

const outpostDestination = fc.record({
  topics: anyTexts,
  disabled_at: fc.option(fc.constant('2026-01-01T00:00:00Z')),
  config: fc.record({ url: anyUrl, custom_headers: anyMap.map((map) => JSON.stringify(map)) }),
  credentials: fc.record({ secret: anySecret }),
  metadata: fc.option(anyMap),
  target: anyText,
});

const mapOutpost = fc
  .array(outpostDestination, { minLength: 1, maxLength: 6 })
  .map((destinations) =>
    destinations.map((read, nth) => {
      const app = mapTenant({ id: `tenant ${nth % 2}`, metadata: read.metadata }, TARGET).document;
      return mapDestination({ ...read, id: `des_${nth}`, type: 'webhook' }, 'tenant', app);
    }),
  );

describe('whatever a service has', () => {
  it.each([
    ['Svix', mapSvix],
    ['Convoy', mapConvoy],
    ['Outpost', mapOutpost],
  ] as [string, fc.Arbitrary<Mapped[]>][])(
    'comes over from %s as the API takes it, and a second run writes nothing',
    async (_, arbitrary) => {
      const property = fc.asyncProperty(arbitrary, async (mapped) => {
        const model = new ModelApi();
        const first = await importInto(model, mapped);
        expect(first.findings.filter(({ about }) => about === 'refused by Posthorn')).toEqual([]);
        expect(model.count('webhooks')).toBe(mapped.length);

        model.requests.length = 0;
        const second = await importInto(model, mapped);
        expect(second.webhooks).toMatchObject({ unchanged: mapped.length });
        expect(model.requests.filter(isWrite)).toEqual([]);
      });
      await fc.assert(property, { numRuns: 150 });
    },
  );

  it('is there once when the service lists it twice', async () => {
    const app = mapApp({ id: 'app_1', name: 'An app' }, TARGET).document;
    const endpoint = { id: 'ep_1', url: 'https://example.com' };
    const read = { endpoint, secret: null, headers: {}, transformation: {} };
    const model = new ModelApi();
    const { webhooks } = await importInto(model, [
      mapSvixEndpoint(read, app),
      mapSvixEndpoint(read, app),
    ]);
    expect([model.count('webhooks'), webhooks]).toEqual([
      1,
      expect.objectContaining({ read: 1, created: 1 }),
    ]);
  });

  it('is there once when the import ends at any write, before it or after it', async () => {
    const app = mapApp({ id: 'app_1', name: 'An app' }, TARGET).document;
    const read = { secret: null, headers: {}, transformation: {} };
    const mapped = Array.from({ length: 4 }, (_, nth) =>
      mapSvixEndpoint({ ...read, endpoint: { id: `ep_${nth}`, url: 'https://example.com' } }, app),
    );
    for (const isAfter of [false, true]) {
      for (let nth = 0; nth < 6; nth += 1) {
        const model = new ModelApi();
        let writes = 0;
        // The client repeats nothing after this answer.
        const gone = { status: 401, code: 'unauthorized' };
        model.interfere = ({ method }, answer) => {
          if (method === 'GET' || writes++ !== nth) return answer();
          if (isAfter) answer();
          return gone;
        };
        await expect(importInto(model, mapped)).rejects.toMatchObject({ status: 401 });
        const { webhooks } = await importInto(model, mapped);
        expect(webhooks).toMatchObject({ read: 4, failed: 0 });
        expect(model.count('webhooks')).toBe(4);
      }
    }
  });
});
