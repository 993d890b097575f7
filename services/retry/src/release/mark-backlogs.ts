import { TURN_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';

interface Released {
  record: Pick<LogRecord, 'headers'>;
  due: Pick<DueAttempt, 'webhookId' | 'createdAtMs'>;
}

/** Stores which webhooks have a backlog that is older than half of the time after which it would be swept. */
export type MarkBacklogs = (released: readonly Released[]) => void;

export interface MarkBacklogsDeps {
  webhooks: Pick<WebhookStates, 'markDeferred'>;
  logger: Pick<Logger, 'warn'>;
  /** After which time a delivery counts as stuck, in milliseconds. */
  reconcileAfterMs: number;
  nowMs: () => number;
}

/** One write for each webhook in this part of the time: three hours of a day. */
const MARKS = 8;
/** Beyond this many webhooks some are marked more often. */
const MAX_KNOWN = 10_000;

/**
 * A backlog that waits for its endpoint comes back from a deferral every 12 hours at least, so what is
 * a day old was released here at half of that age. The sweep of stuck deliveries would publish each of
 * its deliveries again, and each copy would be given a turn at the endpoint that it never uses.
 */
export function createMarkBacklogs(deps: MarkBacklogsDeps): MarkBacklogs {
  const { webhooks, logger, reconcileAfterMs, nowMs } = deps;
  /** Webhook → when it was last marked here. */
  const marked = new Map<string, number>();
  const isOld = ({ record, due }: Released): boolean =>
    record.headers[TURN_AT_HEADER] !== undefined &&
    nowMs() - due.createdAtMs >= reconcileAfterMs / 2;
  const isMarked = (id: string): boolean =>
    nowMs() - (marked.get(id) ?? -Infinity) < reconcileAfterMs / MARKS;
  const mark = async (ids: readonly string[]): Promise<void> => {
    const atMs = nowMs();
    if (marked.size > MAX_KNOWN) marked.clear();
    for (const id of ids) marked.set(id, atMs);
    try {
      await webhooks.markDeferred(ids, atMs);
    } catch (error) {
      for (const id of ids) marked.delete(id);
      logger.warn({ err: error }, 'failed to mark webhooks with a backlog, trying again');
    }
  };
  return (released) => {
    const ids = new Set(released.filter(isOld).map(({ due }) => due.webhookId));
    const unmarked = [...ids].filter((id) => !isMarked(id));
    // Not awaited: no release waits for a hint that is needed in half a day.
    if (unmarked.length > 0) void mark(unmarked);
  };
}
