import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { EndpointRequest } from '../services/simulated-endpoints.ts';
import { TOPICS } from '../world/world.ts';

/** What was observed of a run from outside the services, to check the invariants. */
export interface Observations {
  /** Ids of the messages that were acknowledged to the client. */
  accepted: string[];
  /** Attempt id → the requests that its endpoint has received. */
  requests: Map<string, EndpointRequest[]>;
  /** Attempt id → how many times its record was written to a topic that the dispatcher reads. */
  copies: Map<string, number>;
  /** Attempt id → how many times a rebalance or a crash interrupted it. */
  interruptions: Map<string, number>;
  /** Ids of the deliveries with a dead letter because their schedule is exhausted. */
  deadLetters: Set<string>;
  /** Delivery id → how many attempts it had when it waited last. */
  waited: Map<string, number>;
  /** Ids of the webhooks that have ever been deleted or disabled. */
  inactiveWebhooks: Set<string>;
  /** Delivery id → when, in virtual time, it got its document; and when it became final. */
  recordedSinceMs: Map<string, number>;
  finalSinceMs: Map<string, number>;
  /** Webhook id → since when it has been deleted or disabled; only of those that are so now. */
  inactiveSinceMs: Map<string, number>;
}

export function createObservations(): Observations {
  return {
    accepted: [],
    requests: new Map(),
    copies: new Map(),
    interruptions: new Map(),
    deadLetters: new Set(),
    waited: new Map(),
    inactiveWebhooks: new Set(),
    recordedSinceMs: new Map(),
    finalSinceMs: new Map(),
    inactiveSinceMs: new Map(),
  };
}

export function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Returns the attempt that the dispatcher makes for a record; null for records of other topics. */
export function attemptIdIn({ topic, value }: Pick<LogRecord, 'topic' | 'value'>): string | null {
  if (topic === TOPICS.messageCreated) return decodeMessageCreated(value).attemptId;
  return topic === TOPICS.retryDue ? decodeRetryDue(value).attemptId : null;
}
