import type { OpenCircuit, OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { unavailable } from '../../http/api-error.ts';
import type { ReadWebhookOutlines, WebhookOutline } from './webhook-outlines.ts';

export interface ReadCircuitsDeps {
  circuits: Pick<OpenCircuits, 'list'>;
  readOutlines: ReadWebhookOutlines;
  nowMs: () => number;
}

export interface CircuitsFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
}

export interface CircuitOfWebhook extends OpenCircuit {
  webhook: WebhookOutline;
}

/** Returns the open circuits of a company, those that opened first at the beginning. Throws ApiError 503 without Redis. */
export type ReadCircuits = (
  companyId: string,
  filter: CircuitsFilter,
) => Promise<CircuitOfWebhook[]>;

/** Redis does not know whose webhooks they are, so those of all companies are read: once a second, for all requests. */
const FRESH_MS = 1_000;
/** Webhooks that are looked up at a time. */
const PAGE = 1_000;

export function createReadCircuits({
  circuits,
  readOutlines,
  nowMs,
}: ReadCircuitsDeps): ReadCircuits {
  let last: { atMs: number; read: Promise<OpenCircuit[]> } | null = null;
  const readAll = (): Promise<OpenCircuit[]> => {
    if (last === null || nowMs() - last.atMs > FRESH_MS) {
      last = { atMs: nowMs(), read: circuits.list() };
    }
    return last.read.catch(() => {
      last = null;
      throw unavailable('redis_unavailable');
    });
  };
  return async (companyId, { appId, webhookId }) => {
    const all = await readAll();
    const asked =
      webhookId === undefined ? all : all.filter((each) => each.webhookId === webhookId);
    const found: CircuitOfWebhook[] = [];
    for (let from = 0; from < asked.length; from += PAGE) {
      const page = asked.slice(from, from + PAGE);
      const outlines = await readOutlines(
        companyId,
        page.map((each) => each.webhookId),
      );
      for (const circuit of page) {
        const webhook = outlines.get(circuit.webhookId);
        const isAsked = webhook && (appId === undefined || webhook.appId === appId);
        if (isAsked) found.push({ ...circuit, webhook });
      }
    }
    return found.sort((one, other) => openedAtMs(one) - openedAtMs(other));
  };
}

/** Circuits without an opening time come first: an earlier version opened them. */
const openedAtMs = ({ sinceMs }: OpenCircuit): number => sinceMs ?? 0;
