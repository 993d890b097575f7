import type { Webhook } from '@posthorn/domain/webhook.ts';
import type {
  FoundWebhook,
  WebhookPage,
  WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Apps } from '../projects/apps.ts';

export interface ListWebhooksDeps {
  apps: Pick<Apps, 'get'>;
  webhooks: Pick<WebhookStore, 'list'>;
  logger: Pick<Logger, 'error'>;
}

/**
 * Returns one page, oldest first. A webhook whose stored secrets cannot be decrypted is logged and left
 * out. Throws ApiError 404 for an unknown app.
 */
export type ListWebhooks = (companyId: string, page: WebhookPage) => Promise<Webhook[]>;

export function createListWebhooks({ apps, webhooks, logger }: ListWebhooksDeps): ListWebhooks {
  return async (companyId, page) => {
    if (page.appId !== undefined) await apps.get(companyId, page.appId);
    const found = await webhooks.list(companyId, page);
    for (const each of found) logIfUnopened(logger, each);
    return found.flatMap((each) => ('problem' in each ? [] : [each]));
  };
}

function logIfUnopened(logger: ListWebhooksDeps['logger'], found: FoundWebhook): void {
  if (!('problem' in found)) return;
  const { keyId, message: reason } = found.problem;
  logger.error({ webhookId: found.id, keyId, reason }, 'webhook cannot be opened');
}
