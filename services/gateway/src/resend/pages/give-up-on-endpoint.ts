import type { Resend } from '@posthorn/domain/resend.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';

export interface GiveUpDeps {
  circuits: Pick<OpenCircuits, 'read'>;
  nowMs: () => number;
}

/** Time without a success after which a dead endpoint is given up: what was deferred has come back as a probe by then. */
const GIVE_UP_AFTER_MS = 300_000;

/** What a resend has seen of one endpoint. */
export interface Progress {
  /** Notes the successes of the page so far. */
  report: (succeeded: number) => void;
  shouldGiveUp: () => Promise<boolean>;
}

/**
 * Returns the rule by which the resend of an app gives up one of its webhooks. The dispatcher defers attempts to a dead
 * endpoint for half a day, page by page. That is right for the resend of one webhook, but the resend of an app has to
 * end.
 */
export function createGiveUpRule(
  { circuits, nowMs }: GiveUpDeps,
  { partOf, webhookId }: Resend,
): Progress {
  if (partOf === null || webhookId === null) {
    return { report: () => undefined, shouldGiveUp: () => Promise.resolve(false) };
  }
  let most = 0;
  let sinceMs = nowMs();
  return {
    report(succeeded) {
      if (succeeded > most) [most, sinceMs] = [succeeded, nowMs()];
    },
    shouldGiveUp: async () =>
      nowMs() - sinceMs > GIVE_UP_AFTER_MS && isCircuitOpen(circuits, webhookId),
  };
}

/** Without Redis no endpoint is known to fail. */
export async function isCircuitOpen(
  circuits: GiveUpDeps['circuits'],
  webhookId: string,
): Promise<boolean> {
  return (await circuits.read(webhookId).catch(() => null)) !== null;
}
