import type { Webhook } from '@posthorn/domain/webhook.ts';
import type {
  FoundWebhook,
  WebhookPage,
  WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { inTurns, type TakeTurn } from '../../http/turns/turns.ts';
import type { Apps } from '../../projects/apps.ts';

export interface ListWebhooksDeps {
  apps: Pick<Apps, 'get'>;
  webhooks: Pick<WebhookStore, 'list'>;
  logger: Pick<Logger, 'error'>;
}

/**
 * Returns one page in parts, oldest first. A webhook whose stored secrets cannot be decrypted is logged and
 * left out. Throws ApiError 404 for an unknown app.
 */
export type ListWebhooks = (
  companyId: string,
  page: WebhookPage,
  takeTurn: TakeTurn,
) => Promise<AsyncIterable<Webhook[]>>;

export function createListWebhooks({ apps, webhooks, logger }: ListWebhooksDeps): ListWebhooks {
  return async (companyId, page, takeTurn) => {
    if (page.appId !== undefined) await apps.get(companyId, page.appId);
    return opened(inTurns(webhooks.list(companyId, page), takeTurn), logger);
  };
}

async function* opened(
  parts: AsyncIterable<FoundWebhook[]>,
  logger: ListWebhooksDeps['logger'],
): AsyncGenerator<Webhook[]> {
  for await (const found of parts) {
    for (const each of found) logIfUnopened(logger, each);
    yield found.flatMap((each) => (each.kind === 'opened' ? [each] : []));
  }
}

function logIfUnopened(logger: ListWebhooksDeps['logger'], found: FoundWebhook): void {
  if (found.kind === 'opened') return;
  const { keyId, message: reason } = found.problem;
  logger.error({ webhookId: found.id, keyId, reason }, 'webhook cannot be opened');
}
