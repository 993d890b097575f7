import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { DASHBOARD_CODES, ERROR_CODES } from '../../services/gateway/src/error-codes.ts';
import { createDocument } from '../../services/gateway/src/openapi/document.ts';
import { routeTable } from '../../test/support/api/route-table.ts';

export const API_TYPES_FILE = join(import.meta.dirname, 'src/schema.ts');

const HEADING =
  '// Written by `node libs/client/write-api-types.ts` from the routes and error codes of the gateway.\n\n';

interface Parameter {
  in?: string;
  schema?: { enum?: unknown[] };
}

interface Operation {
  parameters?: Parameter[];
  responses: Record<string, { headers?: object; content?: Record<string, { example?: unknown }> }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  webhooks?: unknown;
  components: Record<string, object>;
}

/**
 * Returns the types of the API as the client and the dashboard need them: each operation with the query, the body and the success, and
 * each named schema. Addresses are those below /api/v1, where every route is served.
 */
export async function createApiTypes(): Promise<string> {
  const document = JSON.parse(JSON.stringify(createDocument(routeTable()))) as Document;
  const paths = Object.entries(document.paths).map(([path, methods]) => {
    for (const operation of Object.values(methods)) reduce(operation);
    return [path.replace(/^\/api\/v1(?=\/)/, ''), methods] as const;
  });
  const merged: Document['paths'] = {};
  for (const [path, methods] of paths) merged[path] = { ...merged[path], ...methods };
  const { schemas = {} } = document.components;
  const shown = { ...document, paths: merged, webhooks: {}, components: { schemas } };
  // The document is checked elsewhere; its type here has only what changes.
  const types = await openapiTS(shown as unknown as OpenAPI3, {
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
  });
  return `${HEADING}${astToString(types)}\n${errorCodes()}`;
}

/** Failures become errors, and examples would be two thirds of the file. */
function reduce(operation: Operation): void {
  const parameters = operation.parameters ?? [];
  operation.parameters = parameters.filter(
    ({ in: place }) => place === 'query' || place === 'path',
  );
  for (const { schema } of operation.parameters) {
    // Text in the address, a boolean for callers.
    if (schema?.enum?.join() === 'true,false')
      Object.assign(schema, { type: 'boolean', enum: undefined });
  }
  const successes = Object.entries(operation.responses).filter(([status]) =>
    status.startsWith('2'),
  );
  operation.responses = Object.fromEntries(successes);
  for (const [, response] of successes) {
    delete response.headers;
    for (const content of Object.values(response.content ?? {})) delete content.example;
  }
}

function errorCodes(): string {
  const codes = Object.entries(ERROR_CODES).filter(([code]) => !(code in DASHBOARD_CODES));
  const lines = codes.map(
    ([code, { status, when }]) => `  /** ${status}: ${when}. */\n  | '${code}'`,
  );
  return `/** Why the API refuses a request (docs/decisions/0004-api-errors.md). */\nexport type ErrorCode =\n${lines.join('\n')};\n`;
}

if (import.meta.main) writeFileSync(API_TYPES_FILE, await createApiTypes());
