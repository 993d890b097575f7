import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import type { Attempt } from '@posthorn/domain/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { retryAfterMsOf } from '@posthorn/domain/schedule/retry-after.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { cancelReason, findTarget } from './load/find-target.ts';
import { lastingHeaders } from './isolation/defer-attempt.ts';
import type { Result, Turn } from './isolation/queues/queue-state.ts';
import type { HeldPayload, PayloadMemory } from './load/payload-memory.ts';
import type { LoadedWebhook, LoadWebhook } from './load/load-webhook.ts';
import type { SendWebhook } from './sending/send-webhook.ts';
import type { SettledAttempt } from './settle/settle-delivery.ts';

/** What became of a turn. */
export type Made =
  | { kind: 'made'; settled: SettledAttempt }
  /** The message is not stored any more, so that nothing can be sent. */
  | { kind: 'message missing' }
  /** The webhook was changed, or its endpoint asked for a pause meanwhile: the attempt begins anew. */
  | { kind: 'again' };

/** Uses the turn for one request; the turn is over when it resolves. */
export type MakeAttempt = (record: LogRecord, due: DueAttempt, turn: Turn) => Promise<Made>;

export interface MakeAttemptDeps {
  payloads: PayloadMemory;
  loadWebhook: LoadWebhook;
  send: SendWebhook;
  nowMs: () => number;
}

export function createMakeAttempt(deps: MakeAttemptDeps): MakeAttempt {
  return async (record, due, turn) => {
    let attempt: Attempt | null = null;
    let held: HeldPayload | null = null;
    try {
      if (!due.payload) held = await deps.payloads.hold(due.companyId, due.messageId);
      const payload = due.payload ?? held?.payload;
      if (!payload) return { kind: 'message missing' };
      // Found anew, right before it is sent: in a queue or for its rate it may have waited for seconds.
      const target = await findTarget(deps.loadWebhook, due.webhookId);
      if (target.kind !== 'send' || !turn.begin()) return { kind: 'again' };
      attempt = await send(deps, record, due, payload, target.to);
    } finally {
      held?.release();
      await turn.end(attempt && resultOf(attempt, deps.nowMs()));
    }
    return { kind: 'made', settled: await settledOf(deps, record, due, attempt) };
  };
}

function send(
  deps: MakeAttemptDeps,
  { headers }: LogRecord,
  due: DueAttempt,
  payload: Buffer,
  to: LoadedWebhook,
): Promise<Attempt> {
  return deps.send(due, payload, to, traceparentOf(headers.traceparent));
}

/** A fault of ours says nothing about the endpoint, and is reported as no result. */
function resultOf({ outcome, statusCode, responseHeaders }: Attempt, nowMs: number): Result {
  const mayHold = statusCode === 429 || statusCode === 503;
  return {
    outcome,
    statusCode,
    retryAfterMs: mayHold ? retryAfterMsOf(responseHeaders, nowMs) : null,
  };
}

/** Looked up again: what was deleted during the attempt must not wait for its retry to end. */
async function settledOf(
  { loadWebhook }: MakeAttemptDeps,
  { headers }: LogRecord,
  due: DueAttempt,
  attempt: Attempt,
): Promise<SettledAttempt> {
  const reason =
    attempt.outcome === 'success' ? null : cancelReason(await loadWebhook(due.webhookId));
  return { due, attempt, headers: lastingHeaders(headers), reason };
}
