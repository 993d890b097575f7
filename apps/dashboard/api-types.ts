import { join } from 'node:path';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { createDocument } from '../../services/gateway/src/openapi/document.ts';
import { routeTable } from '../../test/support/api/route-table.ts';

export const API_TYPES_FILE = join(import.meta.dirname, 'src/api/schema.d.ts');

const HEADING =
  '// Written by `node apps/dashboard/write-api-types.ts` from the routes of the gateway.\n\n';

interface Operation {
  parameters?: { $ref?: string; in?: string }[];
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { parameters: Record<string, { in: string }> };
}

/**
 * Returns the types of /openapi.json, with all addresses below /api/v1, where every route is served too, and
 * without headers of requests, which the session of the browser replaces.
 */
export async function createApiTypes(): Promise<string> {
  const document = JSON.parse(JSON.stringify(createDocument(routeTable()))) as Document;
  const paths: Document['paths'] = {};
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const operation of Object.values(methods)) leaveOutHeaders(operation, document);
    const versioned = path.startsWith('/api/v1/') ? path : `/api/v1${path}`;
    paths[versioned] = { ...paths[versioned], ...methods };
  }
  const shown = { ...document, paths } as unknown as OpenAPI3;
  return HEADING + astToString(await openapiTS(shown));
}

function leaveOutHeaders(operation: Operation, { components }: Document): void {
  if (operation.parameters === undefined) return;
  operation.parameters = operation.parameters.filter(({ $ref, in: place }) => {
    const name = $ref?.split('/').at(-1);
    return (name === undefined ? place : components.parameters[name]?.in) !== 'header';
  });
}
