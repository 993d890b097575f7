import type { Webhook } from '@posthorn/domain/webhook.ts';
import { seesSecrets } from './sees-secrets.ts';
import type { Caller } from '../http/request/route.ts';
import { withoutSecrets } from '../http/responses/webhook.ts';

/** Returns how the caller is shown webhooks: with their secrets masked unless it may see them. */
export function shownTo<Shown>(
  caller: Caller,
  describe: (webhook: Webhook) => Shown,
): (webhook: Webhook) => Shown {
  return seesSecrets(caller) ? describe : (webhook) => describe(withoutSecrets(webhook));
}
