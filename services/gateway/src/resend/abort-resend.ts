import type { MarkedDelivery, Resend } from '@posthorn/domain/resend.ts';
import type { ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';

export interface AbortDeps {
  resends: Pick<ResendStore, 'findOne'>;
  nowMs: () => number;
}

/**
 * The page under way is left this long to settle, so that it is counted: an attempt takes 15 s at most. What was
 * deferred until then would keep the resend running for hours.
 */
const SETTLE_MS = 20_000;

/** Returns when a client asked to abort the resend, or that of the app which it is a part of. */
export async function whenAbortAsked(
  { resends }: AbortDeps,
  { companyId, partOf, id }: Resend,
): Promise<number | null> {
  return (await resends.findOne(companyId, partOf ?? id))?.abortAskedAtMs ?? null;
}

/** True when the page under way should not be waited for any longer. */
export async function shouldDropPage(deps: AbortDeps, resend: Resend): Promise<boolean> {
  const askedAtMs = await whenAbortAsked(deps, resend);
  return askedAtMs !== null && deps.nowMs() - askedAtMs > SETTLE_MS;
}

/** Counts what was sent of a page whose marks were freed: the attempts that are recorded. */
export function countSent(
  { id: resendId, page }: Resend,
  found: readonly MarkedDelivery[],
  dropped: ReadonlySet<string>,
): { succeeded: number; failed: number } {
  const isSent = ({ id, attemptCount, mark }: MarkedDelivery): boolean =>
    !dropped.has(id) || (mark?.resendId === resendId && attemptCount >= mark.attemptNumber);
  const unsent = found.filter((delivery) => !isSent(delivery)).length;
  const succeeded = found.filter(
    (delivery) => isSent(delivery) && delivery.status === 'delivered',
  ).length;
  return { succeeded, failed: page.length - unsent - succeeded };
}
