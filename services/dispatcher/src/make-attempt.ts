import type { DueAttempt } from '@posthorn/domain/records.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Turn } from './endpoint-lanes.ts';
import { cancelReason, type FindTarget } from './find-target.ts';
import type { LoadPayload } from './load-payload.ts';
import type { LoadedWebhook, LoadWebhook } from './load-webhook.ts';
import type { PassCircuit } from './pass-circuit.ts';
import { lastingHeaders } from './put-off.ts';
import type { SendWebhook } from './send-webhook.ts';
import type { Settle, Settled } from './settle-delivery.ts';

/** Uses the turn for one request and settles what came of it; the turn is over before it settles. */
export type MakeAttempt = (
  record: LogRecord,
  due: DueAttempt,
  target: LoadedWebhook,
  turn: Turn,
) => Promise<void>;

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
  return async (record, due, target, turn) => {
    let settled: Settled | null;
    try {
      settled = await takeTurn(deps, record, due, target, turn);
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
  known: LoadedWebhook,
  { hasWaited }: Turn,
): Promise<Settled | null> {
  // What waited behind others may find the webhook disabled or its circuit open by now.
  const target = hasWaited ? await deps.findTarget(due, record.headers) : known;
  if (!target) return null;
  const payload = due.payload ?? (await deps.loadPayload(due.messageId));
  if (!payload) {
    await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
    return { due, reason: 'message_missing' };
  }
  const permit = await deps.circuit.enter(record, due, target.webhook);
  if (!permit) return null;
  const attempt = await deps.send(due, payload, target, record.headers.traceparent);
  await permit(attempt.outcome);
  // Looked up again: what was deleted during the attempt must not wait for its retry to end.
  const reason =
    attempt.outcome === 'success' ? null : cancelReason(await deps.loadWebhook(due.webhookId));
  return { due, attempt, headers: lastingHeaders(record.headers), reason };
}
