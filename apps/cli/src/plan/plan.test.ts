import { describe, expect, test } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { ModelApi } from '../../../../test/support/cli/model-api.ts';
import {
  type RandomDocument,
  randomDocuments,
} from '../../../../test/support/cli/random-documents.ts';
import { selfSigned } from '../../../../test/support/receivers/self-signed.ts';
import { applyPlan, assignUids, type Outcome, readEverything, readPresent } from './adapter.ts';
import { parseDocuments } from './documents.ts';
import { exportDocuments, toYaml } from './export.ts';
import { type Plan, planChanges, type PlanOptions } from './plan.ts';

type Env = Record<string, string>;

const certificates = ['a.example.com', 'b.example.com'].map((host) => selfSigned(host));
const documents = randomDocuments({
  projects: 2,
  eventTypes: 2,
  apps: 2,
  webhooks: 4,
  certificates,
});

class Company {
  readonly model = new ModelApi();
  readonly api = new Posthorn({
    baseUrl: 'http://model',
    apiKey: 'key',
    fetch: this.model.fetch,
    maxRetries: 0,
  });

  async plan(yaml: string, env: Env = {}, options: PlanOptions = {}): Promise<Plan> {
    const parsed = parseDocuments([{ name: 'test.yaml', text: yaml }], env);
    return planChanges(parsed, await readPresent(this.api, parsed, options), options);
  }

  async apply(yaml: string, env: Env = {}, options: PlanOptions = {}): Promise<Outcome[]> {
    return applyPlan(this.api, await this.plan(yaml, env, options));
  }

  async export(): Promise<string> {
    return toYaml(exportDocuments(await readEverything(this.api)).documents);
  }
}

const yamlOf = (random: readonly RandomDocument[]): string =>
  random.map(({ document }) => stringify(document)).join('---\n');
const envOf = (random: readonly RandomDocument[]): Env =>
  Object.assign({}, ...random.map(({ env }) => env)) as Env;
const failedOf = (outcomes: readonly Outcome[]): string[] =>
  outcomes.flatMap(({ change, error }) => (error ? [`${change.kind} ${change.uid}`] : []));
const titlesOf = ({ changes }: Plan): string[] =>
  changes.map(({ action, kind, uid }) => `${action} ${kind} ${uid}`);
/** The names of the fields that change. */
const fieldsOf = ({ changes }: Plan): string[] =>
  changes.flatMap((change) => ('fields' in change ? change.fields.map(({ field }) => field) : []));
const reasonsOf = ({ changes }: Plan): string[] =>
  changes.flatMap((change) => (change.action === 'refuse' ? [change.reason] : []));

describe('random documents', () => {
  test('make no difference once they are applied, to what was there before or not', async () => {
    await fc.assert(
      fc.asyncProperty(documents, documents, async (first, second) => {
        const company = new Company();
        expect(failedOf(await company.apply(yamlOf(first), envOf(first)))).toEqual([]);
        expect((await company.plan(yamlOf(first), envOf(first))).changes).toEqual([]);
        // Fields that the second ones leave out may not fit to those that they have.
        const failed = failedOf(await company.apply(yamlOf(second), envOf(second)));
        const { changes } = await company.plan(yamlOf(second), envOf(second));
        const different = changes.map(({ kind, uid }) => `${kind} ${uid}`);
        expect(different.filter((each) => !failed.includes(each))).toEqual([]);
      }),
      { numRuns: 25 },
    );
  }, 120_000);

  test('make no difference when their export is applied, which undoes what was changed since', async () => {
    const noCertificates = randomDocuments({
      projects: 2,
      eventTypes: 2,
      apps: 2,
      webhooks: 4,
      certificates: [],
    });
    await fc.assert(
      fc.asyncProperty(noCertificates, noCertificates, async (first, second) => {
        const company = new Company();
        await company.apply(yamlOf(first), envOf(first));
        const exported = await company.export();
        expect((await company.plan(exported)).changes).toEqual([]);

        await company.apply(yamlOf(second), envOf(second));
        const failed = failedOf(await company.apply(exported));
        const again = parseDocuments([{ name: '', text: await company.export() }], {});
        const before = parseDocuments([{ name: '', text: exported }], {});
        const whole = before.filter(({ kind, uid }) => !failed.includes(`${kind} ${uid}`));
        for (const { kind, uid, fields } of whole) {
          const after = again.find((each) => each.kind === kind && each.uid === uid);
          expect(JSON.stringify(after?.fields)).toBe(JSON.stringify(fields));
        }
      }),
      { numRuns: 15 },
    );
  }, 120_000);

  test('end the same when the process dies anywhere and they are applied again', async () => {
    await fc.assert(
      fc.asyncProperty(documents, fc.nat(10), async (random, dieAt) => {
        const whole = new Company();
        await whole.apply(yamlOf(random), envOf(random));
        const killed = new Company();
        let count = 0;
        // The last request is carried out, and its answer lost.
        killed.model.interfere = ({ method }, answer) => {
          count += method === 'GET' ? 0 : 1;
          if (count === dieAt) answer();
          return count < dieAt ? answer() : { status: 401, code: 'unauthorized' };
        };
        await killed.apply(yamlOf(random), envOf(random)).catch(() => undefined);
        killed.model.interfere = (_request, answer) => answer();
        expect(failedOf(await killed.apply(yamlOf(random), envOf(random)))).toEqual([]);
        expect((await killed.plan(yamlOf(random), envOf(random))).changes).toEqual([]);
        for (const kind of ['projects', 'apps', 'webhooks'] as const) {
          expect(killed.model.count(kind)).toBe(whole.model.count(kind));
        }
      }),
      { numRuns: 12 },
    );
  }, 120_000);
});

const SHOP = `
kind: Project
uid: shop
name: Shop
---
kind: App
uid: orders
projectId: uid:shop
name: Orders
`;
const WEBHOOK = `---
kind: Webhook
uid: hook
appId: uid:orders
url: https://example.com/a
`;
const SECRETS = ['A', 'B'].map((char) => `whsec_${Buffer.alloc(32, char).toString('base64')}`);
const [SECRET = '', OTHER = ''] = SECRETS;

describe('secrets', () => {
  const secret = `${SHOP}${WEBHOOK}secret: {secretFrom: {env: SECRET}}\n`;

  test('a changed one is rotated, and one without a variable stays', async () => {
    const company = new Company();
    await company.apply(secret, { SECRET });
    expect((await company.plan(secret)).changes).toEqual([]);
    expect((await company.plan(secret, { SECRET: '' })).changes).toEqual([]);
    const plan = await company.plan(secret, { SECRET: OTHER });
    expect(fieldsOf(plan)).toEqual(['secret']);
    expect(plan.changes[0]).toMatchObject({ action: 'update', body: {}, secret: OTHER });
    await company.apply(secret, { SECRET: OTHER });
    expect((await company.plan(secret, { SECRET: OTHER })).changes).toEqual([]);
  });

  test('a given hmacSecret does not follow a rotation', async () => {
    const company = new Company();
    const both = `${secret}hmacSecret: {secretFrom: {env: HMAC}}\n`;
    await company.apply(both, { SECRET, HMAC: SECRET });
    expect(failedOf(await company.apply(both, { SECRET: OTHER, HMAC: SECRET }))).toEqual([]);
    expect((await company.plan(both, { SECRET: OTHER, HMAC: SECRET })).changes).toEqual([]);
  });

  test('one without a variable is generated for a new webhook, with a note', async () => {
    const { changes, notes } = await new Company().plan(secret);
    expect(changes.map(({ action }) => action)).toEqual(['create', 'create', 'create']);
    expect(notes).toEqual(['Webhook hook: secret is generated, because SECRET is not set']);
  });

  test.each([
    ['authMethod: apiKey\napiKeyHeader: X-Key\napiKey: {secretFrom: {env: NAME}}', 'apiKey'],
    ['customHeaders: [{key: X-Token, value: {secretFrom: {env: NAME}}}]', 'customHeaders X-Token'],
    ['tls: {certificate: x, key: {secretFrom: {env: NAME}}}', 'tls, which changes as a whole'],
  ])('a credential without a variable refuses a new webhook: %s', async (lines, field) => {
    const plan = await new Company().plan(`${SHOP}${WEBHOOK}${lines}\n`);
    expect(reasonsOf(plan)).toEqual([`${field}: NAME is not set`]);
  });

  test('a custom header without a variable keeps its value beside one that changes', async () => {
    const company = new Company();
    const headers = (other: string): string =>
      `${SHOP}${WEBHOOK}customHeaders: [{key: X-Token, value: {secretFrom: {env: T}}}, {key: X-B, value: ${other}}]\n`;
    await company.apply(headers('one'), { T: 'token' });
    await company.apply(headers('two'));
    expect((await company.plan(headers('two'), { T: 'token' })).changes).toEqual([]);
    expect(fieldsOf(await company.plan(headers('two'), { T: 'new' }))).toEqual(['customHeaders']);
  });

  test('those that the key may not see count as equal, and are noted', async () => {
    const company = new Company();
    await company.apply(secret, { SECRET });
    company.model.seesSecrets = false;
    const { changes, notes } = await company.plan(secret, { SECRET: OTHER });
    expect(changes).toEqual([]);
    expect(notes).toEqual([expect.stringContaining('not compared: 1')]);
  });

  test('are read only when one is given', async () => {
    const company = new Company();
    await company.apply(secret, { SECRET });
    company.model.seesSecrets = true;
    expect((await company.plan(secret, { SECRET: OTHER })).changes).toHaveLength(1);
    const present = await readPresent(
      company.api,
      parseDocuments([{ name: '', text: secret }], {}),
    );
    expect(JSON.stringify(present.objects)).not.toContain('whsec_');
  });

  test('a certificate with another key is a change, the same one is none', async () => {
    const company = new Company();
    const tls = `${SHOP}${WEBHOOK}tls: {certificate: {}, key: {secretFrom: {env: KEY}}}\n`;
    const [first, second] = certificates.map(({ cert, key }) => ({
      yaml: tls.replace('{}', JSON.stringify(cert)),
      env: { KEY: key },
    }));
    if (!first || !second) throw new Error('There are two certificates');
    await company.apply(first.yaml, first.env);
    expect((await company.plan(first.yaml)).changes).toEqual([]);
    expect(fieldsOf(await company.plan(second.yaml, second.env))).toEqual(['tls']);
    expect(reasonsOf(await company.plan(second.yaml))).toEqual([
      'tls, which changes as a whole: KEY is not set',
    ]);
  });

  test('are in no plan, error or JSON text', async () => {
    const company = new Company();
    const lines = 'customHeaders: [{key: X-T, value: {secretFrom: {env: T}}}]\n';
    const yaml = `${secret}${lines}`;
    const plan = await company.plan(yaml, { SECRET, T: 'hidden-token' });
    const shown = plan.changes.map((change) => ('fields' in change ? change.fields : change));
    expect(JSON.stringify(shown)).not.toMatch(/whsec_|hidden-token/);
    expect(JSON.stringify(parseDocuments([{ name: '', text: yaml }], { SECRET }))).not.toContain(
      'whsec_',
    );
  });
});

describe('owners', () => {
  test('that nothing has refuse the document, and those among the documents come first', async () => {
    const company = new Company();
    const plan = await company.plan(`${WEBHOOK}---\n${SHOP}`);
    expect(titlesOf(plan)).toEqual([
      'create Project shop',
      'create App orders',
      'create Webhook hook',
    ]);
    expect(reasonsOf(await company.plan(WEBHOOK))).toEqual(['appId: nothing has uid:orders']);
  });

  test('and environments cannot change', async () => {
    const company = new Company();
    await company.apply(`${SHOP}---\nkind: Project\nuid: other\nname: Other\n`);
    const moved = SHOP.replace('projectId: uid:shop', 'projectId: uid:other');
    expect(reasonsOf(await company.plan(moved))).toEqual([
      'it is not in uid:other, and cannot move',
    ]);
    const changed = 'kind: Project\nuid: shop\nname: Shop\nenvironment: production\n';
    expect(reasonsOf(await company.plan(changed))).toEqual(['environment cannot change']);
  });

  test('that were not created leave out what is in them, and nothing else', async () => {
    const company = new Company();
    company.model.interfere = ({ method, path }, answer) =>
      method === 'PUT' && path.includes('orders')
        ? { status: 409, code: 'quota_exceeded' }
        : answer();
    const other = '---\nkind: App\nuid: other\nprojectId: uid:shop\nname: Other\n';
    const outcomes = await company.apply(`${SHOP}${WEBHOOK}${other}`);
    expect(failedOf(outcomes)).toEqual(['App orders', 'Webhook hook']);
    expect(company.model.count('apps')).toBe(1);
  });
});

describe('event types', () => {
  const type = (name: string, lines = ''): string =>
    `---\nkind: EventType\nname: ${name}\nprojectId: uid:shop\n${lines}`;
  const strict = 'kind: Project\nuid: shop\nname: Shop\neventTypePolicy: validated\n';
  const TYPES = type('order/paid', 'schema: {type: object}\n') + type('order.sent');

  test('come after a new project and before its policy', async () => {
    const company = new Company();
    const plan = await company.plan(strict + TYPES);
    expect(titlesOf(plan)).toEqual([
      'create Project shop',
      'create EventType uid:shop/order/paid',
      'create EventType uid:shop/order.sent',
      'update Project shop',
    ]);
    expect(failedOf(await company.apply(strict + TYPES))).toEqual([]);
    const puts = company.model.requests.filter((each) => each.startsWith('PUT'));
    expect(puts.at(-1)).toBe('PUT /projects/uid:shop');
    expect((await company.plan(strict + TYPES)).changes).toEqual([]);
    const { objects } = await readPresent(
      company.api,
      parseDocuments([{ name: '', text: strict }], {}),
    );
    expect(objects.map(({ fields }) => fields.eventTypePolicy)).toEqual(['validated']);
  });

  test('come after a policy that becomes weaker', async () => {
    const company = new Company();
    await company.apply(strict + TYPES);
    const known = strict.replace('validated', 'known');
    const plan = await company.plan(known + type('order.new'));
    expect(titlesOf(plan)).toEqual(['update Project shop', 'create EventType uid:shop/order.new']);
  });

  test('that could not be made leave the policy as it is', async () => {
    const company = new Company();
    company.model.interfere = ({ method, path }, answer) =>
      method === 'PUT' && path.includes('order.sent')
        ? { status: 409, code: 'quota_exceeded' }
        : answer();
    const failed = failedOf(await company.apply(strict + TYPES));
    expect(failed).toEqual(['EventType uid:shop/order.sent', 'Project shop']);
    company.model.interfere = (_request, answer) => answer();
    expect(titlesOf(await company.plan(strict + TYPES))).toEqual([
      'create EventType uid:shop/order.sent',
      'update Project shop',
    ]);
  });

  test('are one and the same under the uid and the id of their project', async () => {
    const company = new Company();
    await company.apply(`${SHOP}${TYPES}`);
    const { id } = await company.api.projects.get('uid:shop');
    const byId = TYPES.replaceAll('uid:shop', id);
    expect((await company.plan(byId)).changes).toEqual([]);
    const changed = byId.replace('type: object', 'type: array');
    expect(fieldsOf(await company.plan(changed))).toEqual(['schema']);
    expect(failedOf(await company.apply(changed))).toEqual([]);
    expect((await company.plan(changed)).changes).toEqual([]);
  });

  test('have no name in their metadata, and stay when others are pruned', async () => {
    const company = new Company();
    const named = { name: 'team', prune: true };
    await company.apply(`${SHOP}${TYPES}`, {}, named);
    expect((await company.plan(`${SHOP}${TYPES}`, {}, named)).changes).toEqual([]);
    expect((await company.plan(SHOP, {}, named)).changes).toEqual([]);
  });
});

describe('null', () => {
  test('takes away what the object has, and what is left out stays', async () => {
    const company = new Company();
    const full = `${SHOP}${WEBHOOK}eventTypes: [a, b]\nrateLimitPerSecond: 5\nfilter: {tags: eu, payload: {n: {$gt: 1}}}\nmetadata: {plan: gold}\n`;
    await company.apply(full);
    const reordered = full.replace(
      'tags: eu, payload: {n: {$gt: 1}}',
      'payload: {n: {$gt: 1}}, tags: eu',
    );
    expect((await company.plan(reordered)).changes).toEqual([]);
    expect((await company.plan(`${SHOP}${WEBHOOK}`)).changes).toEqual([]);
    const without = `${SHOP}${WEBHOOK}eventTypes: null\nrateLimitPerSecond: null\nfilter: null\nmetadata: null\nname: null\n`;
    expect(fieldsOf(await company.plan(without))).toEqual([
      'eventTypes',
      'rateLimitPerSecond',
      'filter',
      'metadata',
    ]);
    await company.apply(without);
    expect((await company.plan(without)).changes).toEqual([]);
  });
});

describe('a change of the method of authentication', () => {
  const apiKey = `${SHOP}${WEBHOOK}authMethod: apiKey\napiKeyHeader: X-Key\napiKey: {secretFrom: {env: K}}\n`;

  test('needs the credential of the new one', async () => {
    const company = new Company();
    await company.apply(`${SHOP}${WEBHOOK}`);
    expect(reasonsOf(await company.plan(apiKey))).toEqual(['apiKey: K is not set']);
    expect(failedOf(await company.apply(apiKey, { K: 'k' }))).toEqual([]);
    expect((await company.plan(apiKey)).changes).toEqual([]);
  });

  test('is needed before fields of another one', async () => {
    const company = new Company();
    await company.apply(apiKey, { K: 'k' });
    const plan = await company.plan(`${SHOP}${WEBHOOK}hmacHeader: X-Sig\n`);
    expect(reasonsOf(plan)).toEqual(['hmacHeader belongs to authMethod hmac']);
  });
});

describe('a name', () => {
  test('is added to the metadata, of documents and of objects', async () => {
    const company = new Company();
    const yaml = `${SHOP}metadata: {plan: gold}\n`;
    await company.apply(yaml);
    await company.apply(SHOP, {}, { name: 'team' });
    const { objects } = await readEverything(company.api);
    expect(objects.map(({ fields }) => fields.metadata)).toEqual([
      { managedBy: 'team' },
      { plan: 'gold', managedBy: 'team' },
    ]);
    expect((await company.plan(yaml, {}, { name: 'team' })).changes).toEqual([]);
    expect(reasonsOf(await company.plan(SHOP, {}, { name: 'others' }))).toEqual([
      'it is managed by team',
      'it is managed by team',
    ]);
  });

  test('prunes what has it and no document, and nothing else', async () => {
    const company = new Company();
    const options = { name: 'team', prune: true };
    const foreign = '---\nkind: Project\nuid: foreign\nname: Foreign\n';
    await company.apply(`${SHOP}${WEBHOOK}`, {}, options);
    await company.apply(foreign);
    const plan = await company.plan('kind: Project\nuid: shop\nname: Shop\n', {}, options);
    expect(titlesOf(plan)).toEqual(['delete Webhook hook', 'delete App orders']);
    await applyPlan(company.api, plan);
    expect(titlesOf(await company.plan(SHOP, {}, options))).toEqual(['create App orders']);
    expect(company.model.count('projects')).toBe(2);
  });

  test('does not delete what has something in it that stays', async () => {
    const company = new Company();
    const options = { name: 'team', prune: true };
    await company.apply(SHOP, {}, options);
    await company.apply(WEBHOOK);
    const keeper = 'kind: Project\nuid: keeper\nname: Keeper\n';
    const plan = await company.plan(keeper, {}, options);
    expect(titlesOf(plan)).toEqual([
      'create Project keeper',
      'refuse App orders',
      'refuse Project shop',
    ]);
    const intoIt = `${keeper}---\nkind: App\nuid: new\nprojectId: uid:shop\nname: New\n`;
    expect(titlesOf(await company.plan(intoIt, {}, options))).toContain('refuse Project shop');
  });

  test('without a name nothing is pruned', async () => {
    const company = new Company();
    await company.apply(SHOP);
    const plan = await company.plan('kind: Project\nuid: x\nname: X\n', {}, { prune: true });
    expect(titlesOf(plan)).toEqual(['create Project x']);
  });
});

describe('an export', () => {
  test('leaves out what has no uid, until it is assigned', async () => {
    const company = new Company();
    await company.api.projects.update('uid:shop', { name: 'Shop' }, { upsert: true });
    await company.api.projects.update('uid:shop', { uid: null });
    const present = await readEverything(company.api);
    expect(exportDocuments(present)).toMatchObject({
      documents: [],
      unnamed: [{ kind: 'Project' }],
    });
    const { documents: named } = exportDocuments(await assignUids(company.api, present));
    expect(named).toEqual([expect.objectContaining({ uid: present.objects[0]?.id })]);
    expect((await company.plan(toYaml(named))).changes).toEqual([]);
  });

  test('names the variables of different webhooks differently', async () => {
    const company = new Company();
    const twin = WEBHOOK.replace('uid: hook', 'uid: ho-ok');
    await company.apply(`${SHOP}${twin}${twin.replace('ho-ok', 'ho.ok')}${WEBHOOK}`);
    const exported = await company.export();
    const names = [...exported.matchAll(/env: (\w+SECRET\w*)/g)].map(([, name]) => name);
    expect(new Set(names).size).toBe(6);
    expect(names).toContain('WEBHOOK_HOOK_SECRET');
  });
});
