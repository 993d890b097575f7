import { traceparentOf } from '@posthorn/domain/traceparent.ts';
import type { Attempt } from '@posthorn/domain/delivery.ts';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { DueAttempt } from '@posthorn/domain/records.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Permit } from './circuit-breakers.ts';
import type { Turn } from './endpoint-lanes.ts';
import { cancelReason, type FindTarget } from './find-target.ts';
import type { LoadPayload } from './load-payload.ts';
import type { LoadWebhook } from './load-webhook.ts';
import type { PassCircuit } from './pass-circuit.ts';
import { lastingHeaders } from './put-off.ts';
import type { SendWebhook } from './send-webhook.ts';
import type { Settle, Settled } from './settle-delivery.ts';

/** Uses the turn for one request and settles what came of it; the turn is over before it settles. */
export type MakeAttempt = (record: LogRecord, due: DueAttempt, turn: Turn) => Promise<void>;

export interface MakeAttemptDeps {
  findTarget: FindTarget;
  circuit: Pick<PassCircuit, 'enter'>;
  loadPayload: LoadPayload;
  send: SendWebhook;
  loadWebhook: LoadWebhook;
  deadLetters: DeadLetters;
  settle: Settle;
}

export function createMakeAttempt(deps: MakeAttemptDeps): MakeAttempt {
  return async (record, due, turn) => {
    let settled: Settled | null;
    try {
      settled = await takeTurn(deps, record, due, turn);
    } finally {
      turn.leave();
    }
    if (settled) await deps.settle(settled);
  };
}

/** Null when the attempt went another way meanwhile. */
async function takeTurn(
  deps: MakeAttemptDeps,
  record: LogRecord,
  due: DueAttempt,
  turn: Turn,
): Promise<Settled | null> {
  const payload = due.payload ?? (await deps.loadPayload(due.messageId));
  if (!payload) {
    await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
    return { due, reason: 'message_missing' };
  }
  // Found anew, right before it is sent: in a line or for its rate it may have waited for seconds.
  const target = await deps.findTarget(due, record.headers);
  const permit = target && (await deps.circuit.enter(record, due, target.webhook));
  if (!permit) return null;
  turn.begin();
  const attempt = await sendWithin(permit, () =>
    deps.send(due, payload, target, traceparentOf(record.headers.traceparent)),
  );
  // Looked up again: what was deleted during the attempt must not wait for its retry to end.
  const reason =
    attempt.outcome === 'success' ? null : cancelReason(await deps.loadWebhook(due.webhookId));
  return { due, attempt, headers: lastingHeaders(record.headers), reason };
}

/** A fault of ours says nothing about the endpoint, and must not leave its circuit waiting for a probe. */
async function sendWithin(permit: Permit, send: () => Promise<Attempt>): Promise<Attempt> {
  let outcome: Outcome | null = null;
  try {
    const attempt = await send();
    outcome = attempt.outcome;
    return attempt;
  } finally {
    await permit(outcome);
  }
}
