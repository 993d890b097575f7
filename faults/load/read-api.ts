import { createApiClient, type ApiClient } from '../../test/support/api/api-client.ts';
import { deliveryKey, type RecordedAttempt, type ShownDelivery } from '../audit/evidence.ts';

/** Deliveries as the API shows them, by `deliveryKey`, and where each can be read again. */
export interface ShownDeliveries {
  shown: Map<string, ShownDelivery>;
  placeOf: Map<string, Place>;
}

/** A delivery and the company that may read it. */
export interface Place {
  api: ApiClient;
  id: string;
}

/** One delivery with its recorded attempts. */
export interface DeliveryHistory extends ShownDelivery {
  attempts: RecordedAttempt[];
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

interface ShownHistory extends ShownDelivery {
  attempts: ShownAttempt[];
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
  const all: ShownDeliveries = { shown: new Map(), placeOf: new Map() };
  const from = new Date(sinceMs - MARGIN_MS).toISOString();
  for (const apiKey of apiKeys) {
    const api = createApiClient(baseUrl, apiKey);
    for (let cursor = ''; ;) {
      const query = new URLSearchParams({ from, limit: String(PAGE), ...(cursor && { cursor }) });
      const { data, nextCursor } = await getPage(
        api,
        `/api/v1/webhook-messages?${query.toString()}`,
      );
      for (const message of data as ShownMessage[]) note(all, { message, api, endpointOf });
      if (!nextCursor) break;
      cursor = nextCursor;
    }
  }
  return all;
}

interface Read extends Pick<ReadOptions, 'endpointOf'> {
  message: ShownMessage;
  api: ApiClient;
}

function note({ shown, placeOf }: ShownDeliveries, { message, api, endpointOf }: Read): void {
  for (const { id, webhookId, status, attemptCount } of message.deliveries) {
    const endpoint = endpointOf.get(webhookId);
    if (endpoint === undefined) continue;
    const key = deliveryKey(message.id, endpoint);
    shown.set(key, { status, attemptCount });
    placeOf.set(key, { api, id });
  }
}

/** Reads one delivery with its attempts; null when the API does not show it now. */
export async function readHistory({ api, id }: Place): Promise<DeliveryHistory | null> {
  const answer = await api.get(`/api/v1/deliveries/${id}`).catch(() => null);
  if (answer?.status !== 200) return null;
  const { status, attemptCount, attempts } = answer.body.data as ShownHistory;
  return { status, attemptCount, attempts: attempts.map(toRecorded) };
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
