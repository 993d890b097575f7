import type { FoundWebhook, TargetList } from '@posthorn/platform/mongo/webhooks/webhooks.ts';

/** Returns what a look-up of the targets finds when it finds these webhooks. */
export function targetListOf(webhooks: readonly FoundWebhook[]): TargetList {
  return {
    targets: webhooks.map(({ id, disabled }) => ({ id, disabled })),
    oldest: webhooks[0] ?? null,
  };
}
