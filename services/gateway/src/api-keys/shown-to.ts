import type { Webhook } from '@posthorn/domain/webhook.ts';
import { seesSecrets } from './sees-secrets.ts';
import type { Caller } from '../http/request/route.ts';
import { withoutSecrets } from '../http/responses/webhook.ts';

/** Returns how the caller is shown webhooks: with their secrets masked unless it may see them, and asks for them. */
export function shownTo<Shown>(
  caller: Caller,
  describe: (webhook: Webhook) => Shown,
  asksForSecrets = true,
): (webhook: Webhook) => Shown {
  const isShown = asksForSecrets && seesSecrets(caller);
  return isShown ? describe : (webhook) => describe(withoutSecrets(webhook));
}
