import type { OpenCircuit, OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { unavailable } from '../../http/api-error.ts';
import type { ReadWebhookOutlines, WebhookOutline } from './webhook-outlines.ts';

export interface ReadCircuitsDeps {
  circuits: Pick<OpenCircuits, 'list'>;
  readOutlines: ReadWebhookOutlines;
}

export interface CircuitsFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
}

export interface CircuitOfWebhook extends OpenCircuit {
  webhook: WebhookOutline;
}

/**
 * Returns the open circuits of a company, those that opened first at the beginning; of more than MAX_LISTED any of
 * them. Throws ApiError 503 without Redis.
 */
export type ReadCircuits = (
  companyId: string,
  filter: CircuitsFilter,
) => Promise<CircuitOfWebhook[]>;

/** Webhooks that are looked up at a time. */
const PAGE = 1_000;

export function createReadCircuits({ circuits, readOutlines }: ReadCircuitsDeps): ReadCircuits {
  return async (companyId, { appId, webhookId }) => {
    const all = await circuits.list(companyId).catch(() => {
      throw unavailable('redis_unavailable');
    });
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
    return found.sort((one, other) => one.sinceMs - other.sinceMs);
  };
}
