import { requiredAt } from '@posthorn/domain/required.ts';
import { deliveryIdOf, timeMsOf } from '@posthorn/domain/ids/ids.ts';
import { statusBeforeAttempts } from '@posthorn/domain/delivery-lifecycle/when-cancelled.ts';
import type { DeliveryStatus } from '@posthorn/domain/message/delivery.ts';
import { messageStatus } from '@posthorn/domain/message/message.ts';
import { slicesOf } from '@posthorn/platform/async/batching/slices-of.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
} from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { MessageOutline } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { TakeTurn } from '../http/turns/turns.ts';

export interface OutlineDeps {
  deliveries: Pick<DeliveryQueries, 'outlinesOf'>;
  takeTurn: TakeTurn;
}

/** A message that may match, with its deliveries in the order of its targets, also those that have no document yet. */
export interface Candidate {
  outline: MessageOutline;
  deliveries: DeliveryOutline[];
}

export interface DeliveryFilter {
  webhookId?: string | undefined;
  /** Of the delivery to `webhookId`, without which it has no effect. */
  deliveryStatus?: DeliveryStatus | undefined;
}

/** Keeps the messages whose delivery to the webhook has the status. Reads no deliveries to other webhooks. */
export async function withDeliveryStatus(
  { deliveries }: OutlineDeps,
  companyId: string,
  { webhookId, deliveryStatus }: DeliveryFilter,
  outlines: readonly MessageOutline[],
): Promise<readonly MessageOutline[]> {
  if (webhookId === undefined || deliveryStatus === undefined) return outlines;
  const ids = outlines.map(({ id }) => deliveryIdOf(id, webhookId));
  const known = await deliveries.outlinesOf(companyId, ids);
  const statuses = new Map(known.map(({ id, status }) => [id, status]));
  return outlines.filter((outline, index) => {
    const status =
      statuses.get(requiredAt(ids, index, 'delivery id')) ??
      statusBeforeAttempts(outline, webhookId);
    return status === deliveryStatus;
  });
}

/** To read the deliveries to so many targets takes 3 ms of CPU time. */
const TARGETS_PER_TURN = 1_000;

export async function withDeliveries(
  deps: OutlineDeps,
  companyId: string,
  outlines: readonly MessageOutline[],
): Promise<Candidate[]> {
  const candidates: Candidate[] = outlines.map((outline) => ({ outline, deliveries: [] }));
  const targets = candidates.flatMap((candidate) =>
    candidate.outline.targets.map((webhookId) => ({ candidate, webhookId })),
  );
  for (const slice of slicesOf(targets, TARGETS_PER_TURN)) {
    await deps.takeTurn();
    await addDeliveries(deps, companyId, slice);
  }
  return candidates;
}

/** Each id is derived once: the response needs it too. */
async function addDeliveries(
  { deliveries }: OutlineDeps,
  companyId: string,
  targets: readonly { candidate: Candidate; webhookId: string }[],
): Promise<void> {
  const planned = targets.map(({ candidate, webhookId }) => ({
    candidate,
    delivery: outlineBefore(candidate.outline, webhookId),
  }));
  const recorded = await deliveries.outlinesOf(
    companyId,
    planned.map(({ delivery }) => delivery.id),
  );
  const byId = new Map(recorded.map((each) => [each.id, each]));
  for (const { candidate, delivery } of planned) {
    candidate.deliveries.push(byId.get(delivery.id) ?? delivery);
  }
}

/** Returns a delivery as it is while it has no document. */
export function outlineBefore(
  message: Pick<MessageOutline, 'id' | 'disabledTargets'>,
  webhookId: string,
): DeliveryOutline {
  return {
    id: deliveryIdOf(message.id, webhookId),
    webhookId,
    status: statusBeforeAttempts(message, webhookId),
    attemptCount: 0,
    updatedAtMs: timeMsOf(message.id),
  };
}

export function statusOf({ deliveries }: Candidate): DeliveryStatus {
  return messageStatus(deliveries.map(({ status }) => status));
}
