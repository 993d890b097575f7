import { isFinal } from '@posthorn/domain/delivery.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Evidence } from './evidence.ts';
import type { StoredDocument } from '../parts/mongo-filter.ts';
import { PROMISED_DELAYS_MS } from './watch-records.ts';
import type { World } from '../run/world.ts';

const LAST_ATTEMPT = PROMISED_DELAYS_MS.length + 1;

/** Judges every change of a delivery's document at the moment in which it is made. */
export function watchDeliveries(
  world: World,
  evidence: Evidence,
): (name: string, before: StoredDocument | undefined, after: StoredDocument) => void {
  return (name, before, after) => {
    if (name !== 'deliveries') return;
    // The model keeps documents of any shape; in this collection only the delivery store writes.
    const delivery = after as unknown as DeliveryDocument;
    const old = before as unknown as DeliveryDocument | undefined;
    const { _id, status, attemptCount } = delivery;
    world.tell(
      'mongodb',
      `${_id.slice(-6)} ${old?.status ?? 'absent'} → ${status}, ${attemptCount} attempts`,
    );
    noteSince(evidence.recordedSinceMs, _id, world.time.nowMs());
    if (isFinal(status)) noteSince(evidence.finalSinceMs, _id, world.time.nowMs());
    const faults = [
      ...(old ? faultsOfChange(old, delivery) : []),
      ...faultsOfAttempts(delivery, evidence),
      ...faultsOfState(delivery, evidence),
    ];
    for (const fault of faults) world.fail(`delivery ${_id} (${status}): ${fault}`);
  };
}

function noteSince(sinceMs: Map<string, number>, id: string, nowMs: number): void {
  if (!sinceMs.has(id)) sinceMs.set(id, nowMs);
}

/** Only an attempt that was under way, or one asked for again, changes what was final: to delivered. */
function faultsOfChange(old: DeliveryDocument, { status, attempts }: DeliveryDocument): string[] {
  if (old.attempts.length > attempts.length) return ['an attempt was taken out'];
  if (old.status === 'pending' || old.status === status) return [];
  const isResent = attempts.at(-1)?.trigger === 'resend';
  const mayBeDelivered = old.status === 'cancelled' || (old.status === 'exhausted' && isResent);
  return status === 'delivered' && mayBeDelivered ? [] : [`it was final before: ${old.status}`];
}

function faultsOfAttempts(
  { attempts, attemptCount }: DeliveryDocument,
  evidence: Evidence,
): string[] {
  const numbers = attempts.map(({ number }) => number);
  const isGapless = numbers.every((number, index) => number === index + 1);
  const invented = attempts.filter(
    ({ id, outcome, startedAt }) =>
      !evidence.made
        .get(id)
        ?.some((made) => made.outcome === outcome && made.startedAtMs === startedAt.getTime()),
  );
  return [
    ...(isGapless ? [] : [`its attempts are numbered ${numbers.join(', ')}`]),
    ...(attemptCount === attempts.length ? [] : [`it counts ${attemptCount} attempts`]),
    ...invented.map(({ number }) => `attempt ${number} was recorded and never made`),
  ];
}

function faultsOfState(delivery: DeliveryDocument, { closedWebhooks }: Evidence): string[] {
  const { status, attempts, webhookId, nextAttemptAt } = delivery;
  const hasSuccess = attempts.some(({ outcome }) => outcome === 'success');
  if (hasSuccess !== (status === 'delivered')) {
    return [hasSuccess ? 'an attempt succeeded' : 'no attempt succeeded'];
  }
  if (status === 'pending') return faultsOfNext(delivery);
  if (nextAttemptAt !== null) return ['it is final and shows a next attempt'];
  if (status === 'cancelled' && !closedWebhooks.has(webhookId))
    return ['its webhook was never closed'];
  const scheduled = attempts.filter(({ trigger }) => trigger !== 'resend').length;
  return status === 'exhausted' && scheduled !== LAST_ATTEMPT
    ? [`after ${scheduled} attempts`]
    : [];
}

/** What the API shows as the next attempt is the promised delay after the end of the last one. */
function faultsOfNext({ attempts, nextAttemptAt }: DeliveryDocument): string[] {
  const last = attempts.at(-1);
  if (!last) return ['it has a document and no attempt'];
  const delayMs = PROMISED_DELAYS_MS[last.number - 1];
  const dueAtMs =
    delayMs === undefined ? null : last.startedAt.getTime() + last.durationMs + delayMs;
  return (nextAttemptAt?.getTime() ?? null) === dueAtMs
    ? []
    : ['its next attempt is not as promised'];
}
