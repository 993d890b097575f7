import type { Trigger } from '@posthorn/domain/message/delivery.ts';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { Reason } from '../gate/gate.ts';
import type { QueueKind } from '../gate/views.ts';
import type { ReservedPayload } from '../../load/payload-memory.ts';

/** A due attempt that asks for a place. */
export interface Candidate {
  webhookId: string;
  companyId: string;
  url: string;
  queue: QueueKind;
  trigger: Trigger;
  /** The webhook's own limit; null for none. */
  rateLimitPerSecond: number | null;
  /** When its turn is, in milliseconds since 1970; null when it was never deferred. */
  turnAtMs: number | null;
  /** Since when open circuits have deferred it, in milliseconds since 1970; null when none has. */
  deferredSinceMs: number | null;
  /** False when its payload has to be loaded. */
  hasPayload: () => boolean;
  /** Frees the payload. The attempt waits as ids, and its payload is loaded again before it is made. */
  dropPayload: () => void;
}

/** The right to make one attempt. It counts at the endpoint and in the pool of its queue. */
export interface Place {
  /** The memory for its payload, which `end` releases; null when the candidate had its payload. */
  payload: Pick<ReservedPayload, 'load'> | null;
  /**
   * Starts the request: from here on its duration counts for the endpoint. Returns false when the
   * endpoint has asked for a hold meanwhile; the attempt has to enter again. Called again, it starts
   * the request again: what the attempt did before does not count.
   */
  begin: () => boolean;
  /**
   * Frees the place; null when nothing is to be learned. After `token_failed` the endpoint is slow when that took a
   * second or longer, and nothing else is learned.
   */
  end: (report: AttemptReport | null) => Promise<void>;
}

/** What an attempt showed of its endpoint, or that there was no token for it. */
export interface AttemptReport {
  outcome: Outcome;
  statusCode: number | null;
  /** What `Retry-After` says, in milliseconds; null without one. Not every response with it asks for a hold. */
  retryAfterMs: number | null;
}

/** What is to be done with an attempt. */
export type Admission =
  | { kind: 'place'; place: Place }
  | { kind: 'slow_lane' }
  /** `turnAtMs`: when it is to come again, in milliseconds since 1970. */
  | { kind: 'defer'; because: Reason; turnAtMs: number };
