import { timeMsOf } from '../ids.ts';
import type { DeliveryRef } from './delivery.ts';
import type { DeliveryFilter } from './delivery-filter.ts';

/** The steps of the work on a cancellation: over what is recorded, over the messages, over what was recorded late. */
export const CANCEL_STEPS = ['recorded', 'unrecorded', 'recorded_late'] as const;

export type CancelStepName = (typeof CANCEL_STEPS)[number];

/**
 * A client's request to cancel all pending deliveries that a filter selects (docs/contract.md C25.6). Dispatchers make no
 * attempt of them from then on, and the retry service stores each as cancelled. Times are in milliseconds since 1970.
 */
export interface FilterCancellation {
  id: string;
  companyId: string;
  filter: DeliveryFilter;
  /** Only deliveries that were created before this time. */
  beforeMs: number;
  status: 'running' | 'done';
  /** How far the work has come: the step, and where its next page begins; null at its beginning. */
  step: CancelStepName;
  before: string | null;
  /** The deliveries of the page under way, which are counted when all are stored as cancelled. */
  page: string[];
  /** How many deliveries the work has found pending and stored as cancelled. */
  cancelled: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** What a dispatcher compares with a due attempt. */
export type StoppingCancellation = Pick<FilterCancellation, 'companyId' | 'filter' | 'beforeMs'>;

/** A due attempt, with the event type of its message; '' when that has none, or is not known. */
type DueDelivery = Pick<DeliveryRef, 'messageId' | 'webhookId' | 'appId' | 'createdAtMs'> & {
  eventType: string;
};

/**
 * Whether a delivery whose attempt is due is one of those that the client has cancelled. A filter by `waiting` stops no
 * attempt: it selects by what the delivery waited for when the client asked, which its document shows.
 */
export function isCancelledBy(
  { filter, beforeMs }: Pick<FilterCancellation, 'filter' | 'beforeMs'>,
  due: DueDelivery,
): boolean {
  if (due.createdAtMs >= beforeMs || filter.waiting !== undefined) return false;
  const { sinceMs = -Infinity, untilMs = Infinity } = filter;
  const messageMs = timeMsOf(due.messageId);
  if (messageMs < sinceMs || messageMs > untilMs) return false;
  return (['webhookId', 'appId', 'eventType'] as const).every(
    (name) => filter[name] === undefined || filter[name] === due[name],
  );
}

/** The step that follows; null behind the last one. What waits has a document, so that no message need be read for it. */
export function stepAfter(
  step: CancelStepName,
  { waiting }: Pick<DeliveryFilter, 'waiting'>,
): CancelStepName | null {
  const steps = CANCEL_STEPS.filter((each) => waiting === undefined || each === 'recorded');
  return steps[steps.indexOf(step) + 1] ?? null;
}
