import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import type { InOrder } from '@posthorn/domain/message.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';

interface GoOnDeps {
  sequences: Pick<SequenceStore, 'makeDue'>;
  nowMs: () => number;
}

/** A message may have 10,000 webhooks. */
const KEYS_AT_ONCE = 1_000;

/**
 * Makes the retry service look at the ordering key of a message at these webhooks, behind deliveries that have ended here. It
 * changes nothing where none of them has left the memory of its dispatcher.
 */
export async function goOnBehind(
  { sequences, nowMs }: GoOnDeps,
  { orderingKey }: InOrder,
  webhookIds: readonly string[],
): Promise<void> {
  if (orderingKey === undefined) return;
  for (const some of slicesOf(webhookIds, KEYS_AT_ONCE)) {
    const ids = some.map((webhookId) => sequenceIdOf(webhookId, orderingKey));
    await sequences.makeDue(ids, nowMs());
  }
}
