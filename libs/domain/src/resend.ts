import type { DeliveryRef, DeliveryStatus, Outcome } from './delivery/delivery.ts';
import type { DeliveryFilter } from './delivery/delivery-filter.ts';
import { wantsEvent, type Webhook } from './webhook.ts';

/**
 * A request to send deliveries again: one delivery, or all failed deliveries of a webhook, an app or, by a filter, a company
 * in a period. A
 * `replay` sends the messages of an app in a period to one webhook that was not among their targets: its bounds, and
 * what it has in `page`, are ids of messages. Times are in milliseconds since 1970.
 */
export interface Resend {
  id: string;
  kind: 'resend' | 'replay';
  companyId: string;
  /** Null for the resend of an app or a company, which consists of one webhook resend for each webhook. */
  webhookId: string | null;
  /** The app whose webhooks all get a webhook resend; null for those of the company, and for a resend of one webhook. */
  appId: string | null;
  /** The id of the resend that a webhook resend is a part of; otherwise null. */
  partOf: string | null;
  /** Only deliveries whose last attempt had this outcome; null for all failed deliveries. */
  outcome: Outcome | null;
  /** Only the failed deliveries that it selects; null for all. Its webhook and its time are those of the resend. */
  filter: ResendFilter | null;
  /** Of a replay: only messages of these event types; empty for all that the webhook receives. */
  eventTypes: string[];
  /** Exclusive bounds of the deliveries' ids. `afterId` moves forward with every page. */
  afterId: string;
  beforeId: string;
  /** The deliveries under way, at most one page. They are counted when all are settled. */
  page: string[];
  /** `aborted`: a client ended the resend before everything was sent. */
  status: 'running' | 'done' | 'aborted';
  /** The progress of `page`; null until the resend was put back with an unfinished page. */
  progress: PageProgress | null;
  /** In the resend of an app: the last webhook in which failures were searched when it was put back; '' before. */
  scannedTo: string;
  /** When a process claims the resend next. Null for at once, and for a webhook resend, which is processed with the app's. */
  dueAtMs: number | null;
  /** When a client requested to abort it; otherwise null. For a webhook resend, the app's resend decides. */
  abortAskedAtMs: number | null;
  total: number;
  /** Of a replay: the messages that the webhook gets, whatever becomes of their deliveries. */
  succeeded: number;
  /** Of a replay: the messages that were skipped, because their payload is erased. */
  failed: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** What a resend by filter selects among the failed deliveries of a webhook and a time. */
export type ResendFilter = Pick<DeliveryFilter, 'statuses' | 'reason' | 'appId' | 'eventType'>;

/** The progress of a page, from which any process continues. Times are in milliseconds since 1970. */
export interface PageProgress {
  /** The deliveries without a result. */
  open: string[];
  /** The open deliveries that this resend has not published: another resend has marked them. */
  unpublished: string[];
  /** The number of delivered ones. */
  succeeded: number;
  /** How often the page was published since it was last on hold, and the last time. */
  copies: number;
  publishedAtMs: number;
  beganAtMs: number;
  /** The last time at which a delivery was first published, or got its result. */
  movedAtMs: number;
  /** The last time of a success, or since which it is not on hold; `beganAtMs` before the first one. */
  successAtMs: number;
  /** The last check found the endpoint on hold, where dispatchers drop its records. */
  isHeld?: boolean;
}

/** The mark on a delivery that requests one more attempt. */
export interface ResendMark {
  resendId: string;
  /** Number of the requested attempt. */
  attemptNumber: number;
  /** `asked` until the attempt is settled or the mark is freed. */
  state: 'asked' | 'succeeded' | 'failed';
}

/** A delivery that a resend may send again, with the data for the record of the attempt. */
export interface MarkedDelivery extends DeliveryRef {
  id: string;
  status: DeliveryStatus;
  /** Number of its last recorded attempt. */
  attemptCount: number;
  /** Null when the delivery was never sent again. */
  mark: ResendMark | null;
}

/** Whether this is the resend of one delivery: its bounds are equal. A period ends after it begins, or is empty. */
export function isOfOne({ afterId, beforeId }: Pick<Resend, 'afterId' | 'beforeId'>): boolean {
  return afterId === beforeId;
}

/** Whether it consists of one webhook resend for each webhook: of its app, or without one of the company. */
export function hasParts({ webhookId }: Pick<Resend, 'webhookId'>): boolean {
  return webhookId === null;
}

/** The statuses of a failed delivery. */
export const FAILED_STATUSES = ['exhausted', 'cancelled'] as const;

const FINAL_STATUSES = [...FAILED_STATUSES, 'delivered'] as const;

/**
 * The statuses in which a delivery is sent again. A delivery that a client names is sent in any final status. A
 * period covers failures only, without those that another resend has delivered since the page was stored.
 */
export function statusesToResend(
  resend: Pick<Resend, 'afterId' | 'beforeId'>,
): readonly DeliveryStatus[] {
  return isOfOne(resend) ? FINAL_STATUSES : FAILED_STATUSES;
}

/** Returns the part of an app's or a company's resend that goes to one webhook. Its id names both: each part exists once. */
export function partFor(resend: Resend, webhookId: string, atMs: number): Resend {
  return {
    id: `${resend.id}/${webhookId}`,
    kind: 'resend',
    companyId: resend.companyId,
    webhookId,
    appId: null,
    partOf: resend.id,
    outcome: resend.outcome,
    filter: resend.filter,
    eventTypes: [],
    afterId: resend.afterId,
    beforeId: resend.beforeId,
    page: [],
    status: 'running',
    progress: null,
    scannedTo: '',
    dueAtMs: null,
    abortAskedAtMs: null,
    total: 0,
    succeeded: 0,
    failed: 0,
    createdAtMs: atMs,
    updatedAtMs: atMs,
  };
}

/** Returns whether the webhook of a replay receives messages of an event type now, among those that the client has chosen. */
export function replayWants(
  webhook: Pick<Webhook, 'eventTypes'>,
  { eventTypes }: Pick<Resend, 'eventTypes'>,
): (eventType: string | null) => boolean {
  return (eventType) => wantsEvent(webhook, eventType) && wantsEvent({ eventTypes }, eventType);
}
