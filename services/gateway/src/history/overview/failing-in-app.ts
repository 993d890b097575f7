import type { FailingWebhook } from '@posthorn/platform/mongo/stats/failing-webhooks.ts';
import { worstFirst } from './failure-groups.ts';
import type { ReadWebhookOutlines, WebhookOutline } from './webhook-outlines.ts';

export interface KnownFailing {
  /** The worst first. */
  failing: FailingWebhook[];
  outlines: Map<string, WebhookOutline>;
}

export interface FailingFilter {
  companyId: string;
  appId: string | undefined;
  webhookId?: string | undefined;
}

/** Webhooks that are looked up at a time. */
const PAGE = 200;
const MAX_PAGES = 10;

/**
 * Returns the worst webhooks that exist and are of the app, if one is asked for, at most `limit`. Looks at the worst
 * 2,000 of the company.
 */
export async function worstOf(
  readOutlines: ReadWebhookOutlines,
  all: readonly FailingWebhook[],
  { companyId, appId, webhookId }: FailingFilter,
  limit: number,
): Promise<KnownFailing> {
  const sorted = worstFirst(
    webhookId === undefined ? all : all.filter((each) => each.webhookId === webhookId),
  );
  const failing: FailingWebhook[] = [];
  const outlines = new Map<string, WebhookOutline>();
  for (let page = 0; page < MAX_PAGES && failing.length < limit; page += 1) {
    const some = sorted.slice(page * PAGE, (page + 1) * PAGE);
    if (some.length === 0) break;
    const found = await readOutlines(
      companyId,
      some.map((each) => each.webhookId),
    );
    for (const each of some) {
      const outline = found.get(each.webhookId);
      if (!outline || (appId !== undefined && outline.appId !== appId)) continue;
      if (failing.length === limit) break;
      failing.push(each);
      outlines.set(outline.id, outline);
    }
  }
  return { failing, outlines };
}
