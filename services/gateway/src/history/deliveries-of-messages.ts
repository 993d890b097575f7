import { requiredAt } from '@posthorn/domain/required.ts';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import { statusBeforeAttempts } from '@posthorn/domain/delivery-lifecycle/when-cancelled.ts';
import type { DeliveryStatus } from '@posthorn/domain/message/delivery.ts';
import { messageStatus } from '@posthorn/domain/message/message.ts';
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

/** A message that may match, with those of its deliveries that have a document. */
export interface Candidate {
  outline: MessageOutline;
  known: DeliveryOutline[];
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
  const candidates: Candidate[] = outlines.map((outline) => ({ outline, known: [] }));
  const targets = candidates.flatMap((candidate) =>
    candidate.outline.targets.map((webhookId) => ({ candidate, webhookId })),
  );
  for (let from = 0; from < targets.length; from += TARGETS_PER_TURN) {
    await deps.takeTurn();
    await addKnown(deps, companyId, targets.slice(from, from + TARGETS_PER_TURN));
  }
  return candidates;
}

async function addKnown(
  { deliveries }: OutlineDeps,
  companyId: string,
  targets: readonly { candidate: Candidate; webhookId: string }[],
): Promise<void> {
  const candidates = new Map(
    targets.map(({ candidate, webhookId }) => [
      deliveryIdOf(candidate.outline.id, webhookId),
      candidate,
    ]),
  );
  const outlines = await deliveries.outlinesOf(companyId, [...candidates.keys()]);
  const found = new Map(outlines.map((each) => [each.id, each]));
  for (const [id, { known }] of candidates) {
    const delivery = found.get(id);
    if (delivery) known.push(delivery);
  }
}

export function statusOf({ outline, known }: Candidate): DeliveryStatus {
  const byWebhook = new Map(known.map(({ webhookId, status }) => [webhookId, status]));
  return messageStatus(
    outline.targets.map((to) => byWebhook.get(to) ?? statusBeforeAttempts(outline, to)),
  );
}
