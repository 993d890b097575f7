import { type FakePeer, pageOf, startFakePeer } from './fake-peer.ts';

/*
 * Outpost's API as its published document has it: docs/apis/openapi.yaml of hookdeck/outpost, API 2025-07-01.
 */

export interface OutpostDestinationRecord {
  id: string;
  type: string;
  topics: string[];
  filter?: object | null;
  disabled_at?: string | null;
  config: Record<string, string>;
  credentials: Record<string, string>;
  metadata?: Record<string, string> | null;
  delivery_metadata?: Record<string, string> | null;
  target?: string;
}

export interface OutpostTenantRecord {
  id: string;
  metadata?: Record<string, string> | null;
  destinations: OutpostDestinationRecord[];
}

const TIMES = { created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' };

/** Starts it with these tenants. Without a search index it cannot list them. */
export async function startFakeOutpost(
  tenants: readonly OutpostTenantRecord[],
  { pageSize = 100, canList = true } = {},
): Promise<FakePeer> {
  return startFakePeer('outpost-key', (path, query) => {
    const [, kind, tenantId, list, more] = path.split('/').map(decodeURIComponent);
    if (kind !== 'tenants' || more !== undefined) return null;
    if (tenantId === undefined) {
      if (!canList) return { status: 501, body: { error: 'list tenant not supported' } };
      return tenantPage(tenants, query, pageSize);
    }
    const tenant = tenants.find(({ id }) => id === tenantId);
    if (!tenant) return null;
    if (list === undefined) return { body: tenantOf(tenant) };
    if (list !== 'destinations') return null;
    return { body: tenant.destinations.map((each) => ({ disabled_at: null, ...each, ...TIMES })) };
  });
}

function tenantPage(
  tenants: readonly OutpostTenantRecord[],
  query: URLSearchParams,
  maxSize: number,
): { status?: number; body: unknown } {
  const limit = Number(query.get('limit') ?? 20);
  if (limit > 100) return { status: 400, body: { status: 400, message: 'limit' } };
  const start = Number(atob(query.get('next') ?? btoa('0')));
  const { page, next } = pageOf(tenants, start, Math.min(limit, maxSize));
  const cursors = { next: next === null ? null : btoa(String(next)), prev: null };
  const pagination = { order_by: 'created_at', dir: 'desc', limit, ...cursors };
  return { body: { models: page.map(tenantOf), pagination, count: tenants.length } };
}

function tenantOf({ id, metadata = null, destinations }: OutpostTenantRecord): object {
  const topics = [...new Set(destinations.flatMap((each) => each.topics))];
  return { id, metadata, topics, destinations_count: destinations.length, ...TIMES };
}
