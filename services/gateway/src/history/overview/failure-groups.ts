import type { Outcome } from '@posthorn/domain/outcome.ts';
import { attemptsIn, successesIn } from '@posthorn/domain/stats/attempt-counts.ts';
import type { FailingWebhook } from '@posthorn/platform/mongo/stats/failing-webhooks.ts';
import type { WebhookOutline } from './webhook-outlines.ts';

/** The failed attempts to one webhook with one outcome. */
export interface FailureGroup {
  webhook: WebhookOutline;
  outcome: Outcome;
  count: number;
  firstMs: number;
  lastMs: number;
}

export function failuresOf({ counts }: FailingWebhook): number {
  return attemptsIn(counts) - successesIn(counts);
}

/** The webhooks with the most failed attempts first. */
export function worstFirst(failing: readonly FailingWebhook[]): FailingWebhook[] {
  return failing.toSorted(
    (a, b) => failuresOf(b) - failuresOf(a) || (a.webhookId < b.webhookId ? -1 : 1),
  );
}

/** Returns a group for each outcome but success of each webhook that exists, the largest first. */
export function failureGroups(
  failing: readonly FailingWebhook[],
  outlines: ReadonlyMap<string, WebhookOutline>,
): FailureGroup[] {
  return failing
    .flatMap(({ webhookId, counts, seen }) => {
      const webhook = outlines.get(webhookId);
      if (!webhook) return [];
      return [...seen].map(([outcome, span]) => {
        return { webhook, outcome, count: counts.outcomes[outcome] ?? 0, ...span };
      });
    })
    .sort((a, b) => b.count - a.count);
}

/** Returns the outcome that most of the failed attempts had. */
export function mainReason({ counts }: FailingWebhook): Outcome {
  const failures = Object.entries(counts.outcomes).filter(([outcome]) => outcome !== 'success');
  const [most] = failures.sort(([, a], [, b]) => b - a);
  if (!most) throw new Error('a failing webhook without a failure');
  return most[0] as Outcome;
}
