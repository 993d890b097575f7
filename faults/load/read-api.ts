import { createApiClient, type ApiClient } from '../../test/support/api/api-client.ts';
import { deliveryKey, type RecordedAttempt, type ShownDelivery } from '../audit/evidence.ts';

/** Deliveries as the API shows them, by `deliveryKey`, and their ids. */
export interface ShownDeliveries {
  shown: Map<string, ShownDelivery>;
  idOf: Map<string, string>;
}

interface ReadOptions {
  baseUrl: string;
  apiKeys: readonly string[];
  sinceMs: number;
  endpointOf: ReadonlyMap<string, number>;
}

interface ShownMessage {
  id: string;
  deliveries: { id: string; webhookId: string; status: string; attemptCount: number }[];
}

interface ShownAttempt {
  createdAt: string;
  updatedAt: string;
}

const PAGE = 100;
/** Clocks of services differ by less. */
const MARGIN_MS = 1_000;
const TRIES = 20;
const TRY_AGAIN_MS = 500;

/** Reads what the API shows of all messages since `sinceMs`. */
export async function readShown({
  baseUrl,
  apiKeys,
  sinceMs,
  endpointOf,
}: ReadOptions): Promise<ShownDeliveries> {
  const all: ShownDeliveries = { shown: new Map(), idOf: new Map() };
  const from = new Date(sinceMs - MARGIN_MS).toISOString();
  for (const apiKey of apiKeys) {
    const api = createApiClient(baseUrl, apiKey);
    for (let cursor = ''; ;) {
      const query = new URLSearchParams({ from, limit: String(PAGE), ...(cursor && { cursor }) });
      const { data, nextCursor } = await getPage(
        api,
        `/api/v1/webhook-messages?${query.toString()}`,
      );
      for (const message of data as ShownMessage[]) note(all, message, endpointOf);
      if (!nextCursor) break;
      cursor = nextCursor;
    }
  }
  return all;
}

function note(
  { shown, idOf }: ShownDeliveries,
  message: ShownMessage,
  endpointOf: ReadOptions['endpointOf'],
): void {
  for (const { id, webhookId, status, attemptCount } of message.deliveries) {
    const endpoint = endpointOf.get(webhookId);
    if (endpoint === undefined) continue;
    const key = deliveryKey(message.id, endpoint);
    shown.set(key, { status, attemptCount });
    idOf.set(key, id);
  }
}

/** Returns the recorded attempts of each of these deliveries. */
export async function readAttempts(
  { baseUrl, apiKeys }: Pick<ReadOptions, 'baseUrl' | 'apiKeys'>,
  ids: ReadonlyMap<string, string>,
): Promise<Map<string, RecordedAttempt[]>> {
  const recorded = new Map<string, RecordedAttempt[]>();
  const clients = apiKeys.map((apiKey) => createApiClient(baseUrl, apiKey));
  for (const [key, id] of ids) {
    for (const api of clients) {
      const { status, body } = await api.get(`/api/v1/deliveries/${id}`);
      if (status !== 200) continue;
      const { attempts } = body.data as { attempts: ShownAttempt[] };
      recorded.set(key, attempts.map(toRecorded));
    }
  }
  return recorded;
}

function toRecorded({ createdAt, updatedAt }: ShownAttempt): RecordedAttempt {
  return { startedAtMs: Date.parse(createdAt), endedAtMs: Date.parse(updatedAt) };
}

/** Repeats the request: a gateway may still be recovering from the fault. */
async function getPage(
  api: ApiClient,
  path: string,
): Promise<{ data: unknown; nextCursor?: string | null }> {
  for (let tries = 1; ; tries += 1) {
    const { status, body } = await api.get(path).catch(() => ({ status: 0, body: null }));
    if (status === 200 && body) {
      return { data: body.data as unknown, nextCursor: body.nextCursor ?? null };
    }
    if (tries === TRIES) throw new Error(`GET ${path}: ${status}`);
    await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
  }
}
