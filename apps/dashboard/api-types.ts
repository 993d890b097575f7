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
 * Returns the types of /openapi.json: of the addresses below /api/v1, which are those of every route, and
 * without headers of requests, which the session of the browser replaces.
 */
export async function createApiTypes(): Promise<string> {
  const document = JSON.parse(JSON.stringify(createDocument(routeTable()))) as Document;
  const paths = Object.entries(document.paths).filter(([path]) => path.startsWith('/api/v1/'));
  for (const [, methods] of paths) {
    for (const operation of Object.values(methods)) leaveOutHeaders(operation, document);
  }
  const shown = { ...document, paths: Object.fromEntries(paths) } as unknown as OpenAPI3;
  return HEADING + astToString(await openapiTS(shown));
}

function leaveOutHeaders(operation: Operation, { components }: Document): void {
  if (operation.parameters === undefined) return;
  operation.parameters = operation.parameters.filter(({ $ref, in: place }) => {
    const name = $ref?.split('/').at(-1);
    return (name === undefined ? place : components.parameters[name]?.in) !== 'header';
  });
}
