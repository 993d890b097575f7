import type { Waiting } from '../waiting.ts';
import {
  CANCEL_REASONS,
  type Delivery,
  type DeliveryStatus,
  EXHAUST_REASONS,
  STATUSES,
} from './delivery.ts';

/** Selects the deliveries that are exhausted without a reason: all of their attempts were made. */
export const ALL_ATTEMPTS = 'all_attempts';

/** What a filter may name as the reason of deliveries. */
export const FILTER_REASONS = [...CANCEL_REASONS, ...EXHAUST_REASONS, ALL_ATTEMPTS] as const;

export type FilterReason = (typeof FILTER_REASONS)[number];

/** Selects deliveries of one company: those that have what each given field names (docs/contract.md C12.8). */
export interface DeliveryFilter {
  statuses?: readonly DeliveryStatus[] | undefined;
  /** Only pending ones that wait for this. */
  waiting?: Waiting | undefined;
  reason?: FilterReason | undefined;
  webhookId?: string | undefined;
  /** The app of the message. */
  appId?: string | undefined;
  /** Exactly that of the message. */
  eventType?: string | undefined;
  /** When the message was created, in milliseconds since 1970, both inclusive. */
  sinceMs?: number | undefined;
  untilMs?: number | undefined;
}

/** The statuses that a delivery of the filter may have. */
export function statusesOf({
  statuses = STATUSES,
  reason,
  waiting,
}: Pick<DeliveryFilter, 'statuses' | 'reason' | 'waiting'>): DeliveryStatus[] {
  const ofReason = reason && statusOfReason(reason);
  return statuses.filter(
    (status) =>
      (ofReason === undefined || status === ofReason) &&
      (waiting === undefined || status === 'pending'),
  );
}

/** The status of every delivery with this reason. */
export function statusOfReason(reason: FilterReason): 'cancelled' | 'exhausted' {
  return CANCEL_REASONS.some((each) => each === reason) ? 'cancelled' : 'exhausted';
}

/** Returns the reason that is stored in the deliveries which the filter selects; undefined for any. */
export function storedReasonOf({
  reason,
}: Pick<DeliveryFilter, 'reason'>): Delivery['reason'] | undefined {
  return reason === ALL_ATTEMPTS ? null : reason;
}

/** A delivery with the event type of its message; null when that has none. */
type Filtered = Pick<Delivery, 'status' | 'reason' | 'waiting' | 'webhookId' | 'appId'> & {
  eventType: string | null;
};

/** Whether the filter selects a delivery of its time. */
export function isSelected(filter: DeliveryFilter, delivery: Filtered): boolean {
  const reason = storedReasonOf(filter);
  if (!statusesOf(filter).includes(delivery.status)) return false;
  if (reason !== undefined && reason !== delivery.reason) return false;
  return (['waiting', 'webhookId', 'appId', 'eventType'] as const).every(
    (name) => filter[name] === undefined || filter[name] === delivery[name],
  );
}

/** Whether any field but the status narrows the filter. Without one, it selects everything that the company has. */
export function isNarrowed({ statuses: _statuses, ...fields }: DeliveryFilter): boolean {
  return Object.values(fields).some((value) => value !== undefined);
}
