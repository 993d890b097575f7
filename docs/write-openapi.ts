import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import { compactJson } from '../deploy/compact-json.ts';
import { createDocument } from '../services/gateway/src/openapi/document.ts';
import { routeTable } from '../test/support/api/route-table.ts';

export const OPENAPI_FILE = join(import.meta.dirname, 'openapi.json');

/**
 * Returns the text of docs/openapi.json, which is what a gateway serves at /openapi.json. With EGRESS_ALLOW_HTTP a gateway
 * serves another pattern of URLs.
 */
export function openapiText(policy?: EgressPolicy): string {
  return compactJson(createDocument(routeTable(policy)));
}

if (import.meta.main) writeFileSync(OPENAPI_FILE, openapiText());
