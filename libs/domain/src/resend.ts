import type { DeliveryRef, DeliveryStatus, Outcome } from './delivery/delivery.ts';

/**
 * A request to send deliveries again: one delivery, or all that failed of a webhook or an app in a
 * span of time. Times are in milliseconds since 1970.
 */
export interface Resend {
  id: string;
  companyId: string;
  /** Null when it is of an app: its parts then have one webhook each. */
  webhookId: string | null;
  /** Null unless it is of all webhooks of this app. */
  appId: string | null;
  /** In a part: the id of the app's resend; otherwise null. */
  partOf: string | null;
  /** Only deliveries whose last attempt ended with it; null for all that failed. */
  outcome: Outcome | null;
  /** Bounds of the deliveries' ids, both exclusive. `afterId` moves forward with every page. */
  afterId: string;
  beforeId: string;
  /** The deliveries that are being sent: one page at most. They are counted when all are settled. */
  page: string[];
  /** `aborted`: it ended before everything was sent, because a client asked for that. */
  status: 'running' | 'done' | 'aborted';
  /** What is known of `page`; null until a gateway has put the resend back with the page unfinished. */
  progress: PageProgress | null;
  /** Of an app: the webhook up to which the search for failures has got when it was put back; '' before. */
  scannedTo: string;
  /**
   * When a gateway works on it next, and claims it. Null: at once, as in resends of earlier versions. A part
   * has none: it is worked on with the app's resend.
   */
  dueAtMs: number | null;
  /** When a client asked to abort it; null while nobody has. Of a part, that of the app's resend counts. */
  abortAskedAtMs: number | null;
  total: number;
  succeeded: number;
  failed: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** What a gateway has seen of a page, so that any gateway continues it. Times are in milliseconds since 1970. */
export interface PageProgress {
  /** The deliveries without a result. */
  open: string[];
  /** Of these, the ones that this resend has not published: another resend has marked them. */
  unpublished: string[];
  /** How many have been delivered. */
  succeeded: number;
  /** How often the page was published, and when last. */
  copies: number;
  publishedAtMs: number;
  beganAtMs: number;
  /** When a delivery was last published for the first time, or seen to have a result. */
  movedAtMs: number;
  /** When a success was last seen; `beganAtMs` before the first one. */
  successAtMs: number;
}

/** The mark on a delivery that asks for one more attempt. */
export interface ResendMark {
  resendId: string;
  /** Number of the attempt that it asks for. */
  attemptNumber: number;
  /** `asked` until the attempt is settled or the mark is freed. */
  state: 'asked' | 'succeeded' | 'failed';
}

/** A delivery that a resend may send again, with what the record of the attempt needs. */
export interface MarkedDelivery extends DeliveryRef {
  id: string;
  status: DeliveryStatus;
  /** Number of its last recorded attempt. */
  attemptCount: number;
  /** Null when the delivery was never sent again. */
  mark: ResendMark | null;
}

/** True of the resend of one delivery, whose bounds are equal. A span ends after it begins, or is empty. */
export function isOfOne({ afterId, beforeId }: Pick<Resend, 'afterId' | 'beforeId'>): boolean {
  return afterId === beforeId;
}

/** The statuses of a failed delivery. */
export const FAILED_STATUSES = ['exhausted', 'cancelled'] as const;

const FINAL_STATUSES = [...FAILED_STATUSES, 'delivered'] as const;

/**
 * The statuses that a delivery must have to be sent again. A client that names one delivery wants it
 * sent whatever became of it. A span is of failures only: what another resend has delivered since the
 * page was stored is left alone.
 */
export function statusesToResend(
  resend: Pick<Resend, 'afterId' | 'beforeId'>,
): readonly DeliveryStatus[] {
  return isOfOne(resend) ? FINAL_STATUSES : FAILED_STATUSES;
}

/**
 * The part of an app's resend that goes to one webhook. Its id names both, so that it exists once.
 */
export function partFor(resend: Resend, webhookId: string, atMs: number): Resend {
  return {
    id: `${resend.id}/${webhookId}`,
    companyId: resend.companyId,
    webhookId,
    appId: null,
    partOf: resend.id,
    outcome: resend.outcome,
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
