import { decodeMessageCreated, decodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { MadeRequest } from '../parts/simulated-endpoints.ts';
import { TOPICS } from '../run/world.ts';

/** What was seen of a run from outside; the invariants are judged by it. */
export interface Evidence {
  /** Messages that a client was told are accepted. */
  accepted: string[];
  /** Attempt → the requests that were made for it. */
  made: Map<string, MadeRequest[]>;
  /** Attempt → how often its record was written to a topic that the dispatcher reads. */
  copies: Map<string, number>;
  /** Attempt → how often work on it was under way when a group changed or a process ended. */
  interruptions: Map<string, number>;
  /** Deliveries with a dead letter that says that their schedule is over. */
  deadLetters: Set<string>;
  /** Webhooks that were deleted or disabled at some time. */
  closedWebhooks: Set<string>;
  /** Delivery → since when, by the virtual clock, it has a document; and since when it is final. */
  recordedSinceMs: Map<string, number>;
  finalSinceMs: Map<string, number>;
  /** Webhook → since when it is deleted or disabled, if it is just now. */
  closedSinceMs: Map<string, number>;
}

export function createEvidence(): Evidence {
  return {
    accepted: [],
    made: new Map(),
    copies: new Map(),
    interruptions: new Map(),
    deadLetters: new Set(),
    closedWebhooks: new Set(),
    recordedSinceMs: new Map(),
    finalSinceMs: new Map(),
    closedSinceMs: new Map(),
  };
}

export function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Null for a record that leads to no request by itself. */
export function attemptIdIn({ topic, value }: Pick<LogRecord, 'topic' | 'value'>): string | null {
  if (topic === TOPICS.messageCreated) return decodeMessageCreated(value).attemptId;
  return topic === TOPICS.retryDue ? decodeRetryDue(value).attemptId : null;
}
