import type { CancelReason } from '@posthorn/domain/delivery/delivery.ts';
import { sequenceIdsOf } from '@posthorn/domain/delivery/sequence.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { WaitingDelivery } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';

export interface CancelWaitingDeps {
  deliveries: Pick<DeliveryStore, 'cancelPending'>;
  sequences: Pick<SequenceStore, 'makeDue'>;
  nowMs: () => number;
}

/** A write of 1,000 cancellations takes 20 to 50 ms. A look before its end comes again a second later. */
const LOOK_AFTER_MS = 1_000;

/**
 * Cancels deliveries that wait, and returns how many still did. What stands behind them with their ordering keys goes on
 * within seconds. The keys are made due before that, so that a crash in between forgets none of them.
 */
export async function cancelWaiting(
  { deliveries, sequences, nowMs }: CancelWaitingDeps,
  page: readonly WaitingDelivery[],
  reasonOf: (delivery: WaitingDelivery) => CancelReason,
): Promise<number> {
  const atMs = nowMs();
  const keys = sequenceIdsOf(page);
  if (keys.length > 0) await sequences.makeDue(keys, atMs + LOOK_AFTER_MS);
  const { matched } = await deliveries.cancelPending(
    page.map((each) => ({ id: each.id, reason: reasonOf(each), atMs })),
  );
  return matched;
}
