import { isFinal } from '@posthorn/domain/delivery/delivery.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Observations } from './observations.ts';
import type { StoredDocument } from '../infrastructure/mongo-query.ts';
import { PROMISED_DELAYS_MS } from './check-records.ts';
import type { World } from '../world/world.ts';

const LAST_ATTEMPT = PROMISED_DELAYS_MS.length + 1;

/** Returns a listener that checks every change of a delivery's document. */
export function createDeliveryChecker(
  world: World,
  observations: Observations,
): (name: string, before: StoredDocument | undefined, after: StoredDocument) => void {
  return (name, before, after) => {
    if (name === 'sequences') world.trace('mongodb', `sequence ${JSON.stringify(after)}`);
    if (name !== 'deliveries') return;
    // Simulated collections are untyped. Only the delivery store writes to this one.
    const delivery = after as unknown as DeliveryDocument;
    const old = before as unknown as DeliveryDocument | undefined;
    const { _id, status, attemptCount, position = '-', waiting = '' } = delivery;
    world.trace(
      'mongodb',
      `${_id.slice(-6)} ${old?.status ?? 'absent'} → ${status} ${waiting}, ${attemptCount} attempts, position ${position}`,
    );
    noteSince(observations.recordedSinceMs, _id, world.time.nowMs());
    if (isFinal(status)) noteSince(observations.finalSinceMs, _id, world.time.nowMs());
    const violations = [
      ...(old ? violationsOfChange(old, delivery) : []),
      ...violationsOfAttempts(delivery, observations),
      ...violationsOfState(delivery, observations),
    ];
    for (const violation of violations) {
      world.reportViolation(`delivery ${_id} (${status}): ${violation}`);
    }
  };
}

function noteSince(sinceMs: Map<string, number>, id: string, nowMs: number): void {
  if (!sinceMs.has(id)) sinceMs.set(id, nowMs);
}

/** A final status changes only to delivered, by an attempt that was running or by a resend. */
function violationsOfChange(
  old: DeliveryDocument,
  { status, attempts }: DeliveryDocument,
): string[] {
  if (old.attempts.length > attempts.length) return ['an attempt was removed'];
  if (old.status === 'pending' || old.status === status) return [];
  const isResent = attempts.at(-1)?.trigger === 'resend';
  const mayBeDelivered = old.status === 'cancelled' || (old.status === 'exhausted' && isResent);
  return status === 'delivered' && mayBeDelivered
    ? []
    : [`the final status before was ${old.status}`];
}

function violationsOfAttempts(
  { attempts, attemptCount }: DeliveryDocument,
  observations: Observations,
): string[] {
  const numbers = attempts.map(({ number }) => number);
  const isGapless = numbers.every((number, index) => number === index + 1);
  const withoutRequest = attempts.filter(
    ({ id, outcome, startedAt }) =>
      !observations.requests
        .get(id)
        ?.some(
          (request) => request.outcome === outcome && request.startedAtMs === startedAt.getTime(),
        ),
  );
  return [
    ...(isGapless ? [] : [`its attempts are numbered ${numbers.join(', ')}`]),
    ...(attemptCount === attempts.length ? [] : [`its attemptCount is ${attemptCount}`]),
    ...withoutRequest.map(({ number }) => `attempt ${number} was recorded without a request`),
  ];
}

function violationsOfState(delivery: DeliveryDocument, observations: Observations): string[] {
  const { inactiveWebhooks } = observations;
  const { status, attempts, webhookId, nextAttemptAt } = delivery;
  const hasSuccess = attempts.some(({ outcome }) => outcome === 'success');
  if (hasSuccess !== (status === 'delivered')) {
    return [hasSuccess ? 'an attempt succeeded' : 'no attempt succeeded'];
  }
  if (status === 'pending') return violationsOfNextAttempt(delivery, observations);
  if (nextAttemptAt !== null) return ['it is final and has a next attempt'];
  if (status === 'cancelled' && !inactiveWebhooks.has(webhookId))
    return ['its webhook was never deleted or disabled'];
  const scheduled = attempts.filter(({ trigger }) => trigger !== 'resend').length;
  return status === 'exhausted' && scheduled !== LAST_ATTEMPT
    ? [`after ${scheduled} attempts`]
    : [];
}

/** The next attempt, which the API shows, is the promised delay after the end of the last one. */
function violationsOfNextAttempt(
  { _id, attempts, attemptCount, nextAttemptAt, waiting }: DeliveryDocument,
  { waited }: Observations,
): string[] {
  // A delivery is stored as due when it begins to wait, and again when it is released.
  if (waiting !== undefined) waited.set(_id, attemptCount);
  if (waited.get(_id) === attemptCount) return [];
  const last = attempts.at(-1);
  if (!last) return ['it has a document and no attempt'];
  const delayMs = PROMISED_DELAYS_MS[last.number - 1];
  const dueAtMs =
    delayMs === undefined ? null : last.startedAt.getTime() + last.durationMs + delayMs;
  return (nextAttemptAt?.getTime() ?? null) === dueAtMs
    ? []
    : ['its next attempt is not at the promised time'];
}
