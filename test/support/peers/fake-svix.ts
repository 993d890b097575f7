import { type FakePeer, pageOf, type PeerAnswer, startFakePeer, without } from './fake-peer.ts';

/*
 * Svix's API as its published document has it: https://api.svix.com/api/v1/openapi.json, version 1.960.0.
 */

export interface SvixEndpointRecord {
  id: string;
  uid?: string | null;
  url: string;
  description?: string;
  disabled?: boolean;
  filterTypes?: string[] | null;
  channels?: string[] | null;
  throttleRate?: number | null;
  metadata?: Record<string, string>;
  /** `GET …/secret`. */
  key: string;
  /** `GET …/headers`. */
  headers?: Record<string, string>;
  sensitive?: string[];
  /** `GET …/transformation`. */
  transformation?: { code: string; enabled: boolean };
}

export interface SvixAppRecord {
  id: string;
  uid?: string | null;
  name: string;
  throttleRate?: number | null;
  metadata?: Record<string, string>;
  endpoints: SvixEndpointRecord[];
  /** Other destinations than endpoints. */
  destinations?: { id: string; type: string }[];
}

export interface SvixEventTypeRecord {
  name: string;
  description?: string;
  groupName?: string | null;
  deprecated?: boolean;
  archived?: boolean;
  /** By version, shown with `with_content`. */
  schemas?: Record<string, object> | null;
}

export interface SvixData {
  apps: SvixAppRecord[];
  eventTypes?: SvixEventTypeRecord[];
}

const TIMES = { createdAt: '2026-01-01T00:00:00Z', updatedAt: '2026-01-01T00:00:00Z' };

/** The list of Svix: `iterator` is where the next page begins. Pages are short, so that there are several. */
function listOf(items: readonly object[], query: URLSearchParams, maxSize: number): PeerAnswer {
  const limit = Number(query.get('limit') ?? 50);
  if (limit > 250) return { status: 422, body: { detail: 'limit' } };
  const start = Number((query.get('iterator') ?? 'iter_0').slice('iter_'.length));
  const { page, next } = pageOf(items, start, Math.min(limit, maxSize));
  // The last page has an iterator too, from which later objects continue.
  const iterator = `iter_${next ?? items.length}`;
  return { body: { data: page, iterator, prevIterator: null, done: next === null } };
}

/** Starts it with this data. `pageSize` is the most of a page, whatever `limit` says. */
export async function startFakeSvix(
  { apps, eventTypes = [] }: SvixData,
  { pageSize = 250, token = 'testsk_fake.eu' } = {},
): Promise<FakePeer> {
  const byId = new Map(apps.flatMap((app) => [[app.id, app] as const, [app.uid ?? app.id, app]]));
  return startFakePeer(token, (path, query) => {
    const steps = path.split('/').slice(1).map(decodeURIComponent);
    if (steps[0] !== 'api' || steps[1] !== 'v1') return null;
    const [, , kind, appId, list, endpointId, part] = steps;
    if (kind === 'event-type' && appId === undefined) {
      const isWhole = query.get('with_content') === 'true';
      const isAll = query.get('include_archived') === 'true';
      const listed = eventTypes.filter(({ archived = false }) => isAll || !archived);
      return listOf(
        listed.map((each) => eventTypeOf(each, isWhole)),
        query,
        pageSize,
      );
    }
    if (kind !== 'app') return null;
    if (appId === undefined) return listOf(apps.map(appOf), query, pageSize);
    const app = byId.get(appId);
    if (!app) return null;
    if (list === undefined) return { body: appOf(app) };
    if (list === 'destination') return listOf(app.destinations ?? [], query, pageSize);
    if (list !== 'endpoint') return null;
    if (endpointId === undefined) return listOf(app.endpoints.map(endpointOf), query, pageSize);
    const endpoint = app.endpoints.find(({ id, uid }) => endpointId === id || endpointId === uid);
    return endpoint ? partOf(endpoint, part) : null;
  });
}

const eventTypeOf = (
  { schemas = null, ...record }: SvixEventTypeRecord,
  isWhole: boolean,
): object => ({
  description: record.name,
  archived: false,
  deprecated: false,
  ...record,
  schemas: isWhole ? schemas : null,
  ...TIMES,
});

function appOf(app: SvixAppRecord): object {
  return { metadata: {}, ...without(app, 'endpoints', 'destinations'), ...TIMES };
}

function endpointOf(record: SvixEndpointRecord): object {
  const endpoint = without(record, 'key', 'headers', 'sensitive', 'transformation');
  return { description: '', metadata: {}, version: 1, ...endpoint, ...TIMES };
}

function partOf(endpoint: SvixEndpointRecord, part: string | undefined): PeerAnswer {
  const { key, headers = {}, sensitive = [], transformation } = endpoint;
  switch (part) {
    case undefined:
      return { body: endpointOf(endpoint) };
    case 'secret':
      return { body: { key } };
    case 'headers':
      return { body: { headers, sensitive } };
    case 'transformation':
      return { body: transformation ?? { code: null, enabled: false } };
    default:
      return null;
  }
}
