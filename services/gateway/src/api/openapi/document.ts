import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import type { Route } from '../../http/request/route.ts';
import { NAMED_HEADERS } from './response-headers.ts';
import { DELIVERY_REQUEST } from './delivery-request.ts';
import { createFailureResponses, FAILURE_SCHEMA } from './failure-responses.ts';
import { createSchemaRegistry, type JsonSchema } from './json-schemas.ts';
import { ALIAS_TAG, operationsOf, type Operation } from './operations.ts';
import { NAMED_PARAMETERS } from './parameters.ts';

const GUIDE = readFileSync(join(import.meta.dirname, 'guide.md'), 'utf8');

/** Creates the OpenAPI 3.1 document of the routes (docs/decisions/0011-openapi-from-zod.md). */
export function createDocument(routes: readonly Route[]): JsonSchema {
  const schemas = createSchemaRegistry();
  const failures = createFailureResponses();
  const operations = routes.flatMap((route) => operationsOf(route, schemas, failures));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Posthorn API',
      version: VERSION,
      summary:
        'Webhook delivery: signed, retried on a fixed schedule, with a record of every attempt',
      description: GUIDE,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: tagsOf(routes),
    paths: pathsFrom(operations),
    webhooks: { delivery: DELIVERY_REQUEST },
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
      schemas: { Failure: FAILURE_SCHEMA, ...schemas.named },
      responses: failures.named,
      parameters: NAMED_PARAMETERS,
      headers: NAMED_HEADERS,
    },
  };
}

function tagsOf(routes: readonly Route[]): JsonSchema[] {
  const description =
    'Projects, apps, webhooks and messages are served with and without `/api/v1`. This section lists the second address of each operation.';
  const names = new Set(routes.map(({ tag }) => tag));
  return [...[...names].map((name) => ({ name })), { name: ALIAS_TAG, description }];
}

function pathsFrom(operations: readonly Operation[]): Record<string, JsonSchema> {
  const paths: Record<string, JsonSchema> = {};
  for (const { path, method, operation } of operations) (paths[path] ??= {})[method] = operation;
  return paths;
}
