import { describe, expect, it, test } from '@jest/globals';
import {
  type ApiDocument,
  createCompiler,
  type JsonSchema,
  operationsOf,
  resolved,
} from '../../../../test/support/api/api-document.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import { minimalAppDeps } from '../../../../test/support/api/minimal-app.ts';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import { createApp } from '../app.ts';
import { pathsOf } from '../http/route.ts';
import { createDocument } from './document.ts';

const routes = routeTable();
const document = JSON.parse(JSON.stringify(createDocument(routes))) as ApiDocument;
const operations = operationsOf(document);
const compile = createCompiler(document);

/** Returns the operations that express has mounted, spelled as in the document. */
function mountedRoutes(): string[] {
  const { express } = createApp(minimalAppDeps(routes));
  return (
    express.router.stack
      .flatMap(({ route }) => (route ? [route] : []))
      // The refusal of other methods, which express mounts for every method that Node knows.
      .filter(({ stack }) => !stack.some(({ method }) => method === 'unsubscribe'))
      .flatMap(({ path, stack }) => [...new Set(stack.map(({ method }) => `${method} ${path}`))])
      // The document has `PUT`, of which it is another spelling (docs/contract.md C1.8).
      .filter((each) => !each.startsWith('patch '))
      .map((each) => each.replaceAll(/:(\w+)/g, '{$1}'))
      .map((each) => each.replace(/^\w+/, (method) => method.toUpperCase()))
      .sort()
  );
}

/** Yields every object of the document at any depth. */
function* objectsIn(value: unknown): Generator<JsonSchema> {
  if (value === null || typeof value !== 'object') return;
  if (!Array.isArray(value)) yield value as JsonSchema;
  for (const member of Object.values(value)) yield* objectsIn(member);
}

const VERB_AND_RESOURCE =
  /^(create|list|get|update|delete|find|rotate|revoke|test|resend|start|estimate|abort|cancel|end|hold|resume|skip|replay|erase)[A-Z][A-Za-z]+$/;

describe('the API document', () => {
  it('has each operation that the app has mounted once, at the main address of the contract', () => {
    const mounted = mountedRoutes();
    expect(mounted.length).toBeGreaterThan(40);
    const addresses = routes.map(({ method, ...route }) =>
      pathsOf(route).map((path) => `${method.toUpperCase()} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
    );
    expect(addresses.flat().sort()).toEqual(mounted);
    const documented = operations.map(({ method, path }) => `${method} ${path}`);
    expect(documented.sort()).toEqual(addresses.map(([main]) => main).sort());
    expect(documented).toEqual(expect.arrayContaining(['POST /apps', 'GET /api/v1/projects']));
  });

  it('has the required fields of OpenAPI 3.1, unique operation ids and declared tags', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Posthorn API', version: VERSION });
    const ids = operations.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(VERB_AND_RESOURCE);
    const known = new Set(document.tags.map(({ name }) => name));
    const used = Object.values(document.paths).flatMap((path) =>
      Object.values(path).flatMap(({ tags }) => tags),
    );
    expect(new Set(used)).toEqual(known);
  });

  it('declares each path parameter exactly once', () => {
    for (const { path, parameters } of operations) {
      const names = parameters.filter((each) => each.in === 'path').map(({ name }) => name);
      expect(names).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      const places = parameters.map((each) => `${each.in} ${each.name}`);
      expect(new Set(places).size).toBe(places.length);
    }
  });

  it('has no reference without a target', () => {
    for (const each of objectsIn(document)) {
      if ('$ref' in each) expect(resolved(document, each)).toBeDefined();
    }
  });

  it('names every schema of a response, and lets responses get more fields', () => {
    for (const { answers } of operations) {
      for (const [, { schema }] of [...answers].filter(([status]) => status < 400)) {
        expect(schema).toEqual({ $ref: expect.stringMatching(/\/(\w+Response)$/) });
      }
    }
    const { App, AppResponse, AppListResponse, CreateApp } = document.components.schemas;
    for (const each of [App, AppResponse, AppListResponse]) {
      expect(each).not.toHaveProperty('additionalProperties');
    }
    expect(CreateApp).toHaveProperty('additionalProperties', false);
  });
});

describe('the schemas of the API document', () => {
  const schemas: [string, JsonSchema][] = [
    ...Object.entries(document.components.schemas),
    ...operations.flatMap(({ id, parameters, body, answers }): [string, JsonSchema][] => [
      ...parameters.map(({ name, schema }): [string, JsonSchema] => [`${id} ${name}`, schema]),
      ...(body ? [[`${id} body`, body.schema] as [string, JsonSchema]] : []),
      ...[...answers].map(([status, { schema }]): [string, JsonSchema] => [
        `${id} ${status}`,
        schema,
      ]),
    ]),
  ];

  it('are JSON Schemas of draft 2020-12', () => {
    for (const [, schema] of schemas) compile(schema);
  });

  it('have examples that fit them', () => {
    const failures = schemas.flatMap(([name, schema]) => {
      const check = compile(schema);
      const { examples = [] } = schema as { examples?: unknown[] };
      return examples.filter((each) => !check(each)).map((each) => [name, each, check.errors]);
    });
    expect(failures).toEqual([]);
  });

  test.each(operations.filter(({ body }) => body).map(({ id, body }) => [id, body] as const))(
    'allow no other fields in the body of %s, and its examples fit',
    (_id, body) => {
      const check = compile(body?.schema ?? {});
      expect(body?.examples.length).toBeGreaterThan(0);
      for (const each of body?.examples ?? []) {
        expect([check(each), each, check.errors]).toEqual([true, each, null]);
        expect(check({ ...(each as object), surprise: 1 })).toBe(false);
      }
    },
  );

  test.each(operations.map(({ id, answers }) => [id, answers] as const))(
    'put every response of %s into the envelope, and its examples fit',
    (_id, answers) => {
      for (const [status, { schema, examples, headers }] of answers) {
        const check = compile(schema);
        expect(examples.length).toBeGreaterThan(0);
        for (const example of examples) {
          expect([status, check(example), check.errors]).toEqual([status, true, null]);
          expect(example).toMatchObject({ success: status < 400, message: expect.any(String) });
          expect(check({ ...(example as object), success: status >= 400 })).toBe(false);
        }
        expect(headers).toContain('X-Request-Id');
        if (status === 429 || status === 503) expect(headers).toContain('Retry-After');
      }
    },
  );
});

describe('the parameters of the API document', () => {
  it('say that companyid is required with x-api-key exactly on the routes of docs/contract.md C4.3', () => {
    const required = operations.filter((each) => each.needsCompanyId).map(({ id }) => id);
    expect(required.sort()).toEqual([
      'deleteApp',
      'getApp',
      'listApps',
      'listProjects',
      'updateApp',
    ]);
  });

  it('include the defaults of lists', () => {
    const parameter = (id: string, name: string) =>
      operations.find((each) => each.id === id)?.parameters.find((each) => each.name === name);
    expect(parameter('listApps', 'limit')?.schema).toMatchObject({ default: 10, maximum: 100 });
    expect(parameter('listMessages', 'limit')?.schema).toMatchObject({ default: 50 });
    expect(parameter('listApps', 'projectId')).toMatchObject({ required: true });
  });
});
