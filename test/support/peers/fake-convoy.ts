import { type FakePeer, pageOf, type PeerAnswer, startFakePeer, without } from './fake-peer.ts';

/*
 * Convoy's API as its published document has it: docs/swagger.json of frain-dev/convoy, version 26.3.5.
 */

export interface ConvoySubscriptionRecord {
  uid: string;
  filter_config?: { event_types?: string[]; filter?: object } | null;
  function?: string;
  rate_limit_config?: { count: number; duration: number } | null;
  /** `GET …/filters`. */
  filters?: object[];
}

export interface ConvoyEndpointRecord {
  uid: string;
  name: string;
  url: string;
  owner_id?: string;
  description?: string;
  status?: string;
  secrets?: { uid: string; value: string; expires_at?: string | null }[];
  advanced_signatures?: boolean;
  authentication?: object | null;
  mtls_client_cert?: object | null;
  rate_limit?: number;
  rate_limit_duration?: number;
  http_timeout?: number;
  support_email?: string;
  slack_webhook_url?: string;
  content_type?: string;
  subscriptions: ConvoySubscriptionRecord[];
}

export interface ConvoyData {
  project: string;
  /** Null: the key may not read the settings of the project. */
  signature?: object | null;
  endpoints: ConvoyEndpointRecord[];
}

const SIGNATURE = {
  header: 'X-Convoy-Signature',
  versions: [{ uid: 'v1', hash: 'SHA256', encoding: 'hex' }],
};
const TIMES = { created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' };

/** Starts it with one project. */
export async function startFakeConvoy(
  { project, signature = SIGNATURE, endpoints }: ConvoyData,
  { pageSize = 100 } = {},
): Promise<FakePeer> {
  const subscriptions = endpoints.flatMap((endpoint) =>
    endpoint.subscriptions.map((each) => ({ ...each, endpoint })),
  );
  return startFakePeer('convoy-key', (path, query) => {
    const [, version, kind, projectId, list, id, part] = path.split('/').map(decodeURIComponent);
    if (version !== 'v1' || kind !== 'projects' || projectId !== project) return null;
    if (list === undefined) {
      return signature
        ? dataOf({ uid: project, config: { signature } })
        : { status: 403, body: {} };
    }
    if (list === 'endpoints' && id === undefined) {
      const owner = query.get('ownerId');
      const found = endpoints.filter(({ owner_id }) => owner === null || owner === owner_id);
      return listOf(found.map(endpointOf), query, pageSize);
    }
    if (list !== 'subscriptions') return null;
    const ids = query.getAll('endpointId');
    const found = subscriptions.filter(({ endpoint }) => ids.includes(endpoint.uid));
    if (id === undefined) return listOf(found.map(subscriptionOf), query, pageSize);
    const filters = subscriptions.find(({ uid }) => uid === id)?.filters;
    return part === 'filters' && filters ? dataOf(filters) : null;
  });
}

const dataOf = (data: unknown): PeerAnswer => ({ body: { status: true, message: 'ok', data } });

function listOf(items: readonly object[], query: URLSearchParams, maxSize: number): PeerAnswer {
  const perPage = Number(query.get('perPage') ?? 50);
  const start = Number(query.get('next_page_cursor') ?? 0);
  const { page, next } = pageOf(items, start, Math.min(perPage, maxSize));
  return dataOf({
    content: page,
    pagination: {
      per_page: perPage,
      has_next_page: next !== null,
      has_prev_page: start > 0,
      next_page_cursor: String(next ?? ''),
      prev_page_cursor: '',
    },
  });
}

const endpointOf = (endpoint: ConvoyEndpointRecord): object => ({
  status: 'active',
  secrets: [],
  ...without(endpoint, 'subscriptions'),
  ...TIMES,
});

const subscriptionOf = (
  subscription: ConvoySubscriptionRecord & { endpoint: ConvoyEndpointRecord },
): object => ({
  ...without(subscription, 'endpoint', 'filters'),
  type: 'api',
  endpoint_metadata: endpointOf(subscription.endpoint),
  ...TIMES,
});
