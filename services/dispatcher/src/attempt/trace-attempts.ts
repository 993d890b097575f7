import { type Attempt, endedAtMs } from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import type { OpenSpan, SpanAttributes, Spans } from '@posthorn/platform/service/spans.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';
import type { Settle, SettledAttempt } from '../settle.ts';

interface TraceAttempts {
  send: (send: SendWebhook) => SendWebhook;
  settle: (settle: Settle) => Settle;
}

/**
 * Makes spans of attempts and of their settlement, of messages whose trace is sampled. The endpoint gets the `traceparent`
 * of the attempt, so that its own spans are below it. The settlement is below the attempt too.
 */
export function createTraceAttempts(spans: Spans, nowMs: () => number): TraceAttempts {
  const traceparents = new WeakMap<DueAttempt, string>();

  function begin(due: DueAttempt, parent: string | undefined, startMs: number): OpenSpan | null {
    if (parent === undefined) return null;
    const span = spans.begin({ step: 'attempt', parent, startMs, attributes: idsOf(due) });
    if (span) traceparents.set(due, span.traceparent);
    return span;
  }

  /** Adds the span of an attempt that failed before its request: no token, or it could not be signed. */
  function addUnsent({ due, attempt, headers }: SettledAttempt): void {
    begin(due, traceparentOf(headers.traceparent), attempt.startedAtMs)?.end(endOf(attempt));
  }

  return {
    send: (send) => async (due, payload, webhook, sentWith) => {
      const span = begin(due, sentWith?.traceparent, nowMs());
      if (!span) return send(due, payload, webhook, sentWith);
      const { traceparent } = span;
      const attempt = await send(due, payload, webhook, { ...sentWith, traceparent });
      span.end(attempt ? endOf(attempt) : { endMs: nowMs(), failure: 'proxy_failed' });
      return attempt;
    },
    settle: (settle) => async (settled) => {
      if (settled.kind !== 'attempted' || settled.isRecorded) return settle(settled);
      const { due, attempt } = settled;
      if (!traceparents.has(due)) addUnsent(settled);
      const parent = traceparents.get(due);
      if (parent === undefined) return settle(settled);
      traceparents.delete(due);
      const attributes = { ...idsOf(due), 'posthorn.attempt.outcome': attempt.outcome };
      const span = spans.begin({ step: 'settle', parent, startMs: nowMs(), attributes });
      await settle(settled);
      span?.end({ endMs: nowMs() });
    },
  };
}

function idsOf(due: DueAttempt): SpanAttributes {
  return {
    'posthorn.message.id': due.messageId,
    'posthorn.delivery.id': due.deliveryId,
    'posthorn.attempt.id': due.attemptId,
    'posthorn.webhook.id': due.webhookId,
    'posthorn.company.id': due.companyId,
    'posthorn.app.id': due.appId,
    'posthorn.attempt.number': due.attemptNumber,
    'posthorn.attempt.trigger': due.trigger,
  };
}

function endOf(attempt: Attempt): Parameters<OpenSpan['end']>[0] {
  const { outcome, statusCode } = attempt;
  return {
    endMs: endedAtMs(attempt),
    attributes: { 'posthorn.attempt.outcome': outcome, 'http.response.status_code': statusCode },
    failure: outcome === 'success' ? undefined : outcome,
  };
}
