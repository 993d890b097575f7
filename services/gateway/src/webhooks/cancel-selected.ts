import type { DeliveryFilter } from '@posthorn/domain/delivery/delivery-filter.ts';
import {
  CANCEL_STEPS,
  type FilterCancellation,
} from '@posthorn/domain/delivery/filter-cancellation.ts';
import { timeMsOf, type IdPrefix } from '@posthorn/domain/ids.ts';
import type { FilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import { ApiError } from '../api-error.ts';

interface StartCancellationDeps {
  cancellations: Pick<FilterCancellations, 'insert' | 'findOne' | 'countStopping'>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  /** When a note is due that is to be worked on now, by the time of the database. */
  dueNowMs: () => number;
  /** Starts the work now instead of within a second. */
  wake: () => void;
}

interface AskedCancellation {
  id: string;
  companyId: string;
  filter: DeliveryFilter;
}

/**
 * Stores a cancellation. From then on dispatchers make no attempt of what its filter selects, as soon as they know it, and
 * the retry service stores each delivery as cancelled. A repeat returns the stored one. Throws ApiError 409 while too many
 * of the company are under way.
 */
export type StartCancellation = (asked: AskedCancellation) => Promise<FilterCancellation>;

/** Each attempt of the company is compared with all of them: 100 take 10 µs. */
const MOST_OF_COMPANY = 100;

export function createStartCancellation({
  cancellations,
  newId,
  nowMs,
  dueNowMs,
  wake,
}: StartCancellationDeps): StartCancellation {
  return async ({ id, companyId, filter }) => {
    const stopping = await cancellations.countStopping(companyId, nowMs(), MOST_OF_COMPANY);
    if (stopping >= MOST_OF_COMPANY) throw new ApiError('too_many_cancellations');
    const atMs = nowMs();
    const cancellation: FilterCancellation = {
      id,
      companyId,
      filter,
      // A message that was accepted in this millisecond is one that the client has sent before.
      beforeMs: timeMsOf(newId('msg')) + 1,
      status: 'running',
      step: CANCEL_STEPS[0],
      before: null,
      page: [],
      cancelled: 0,
      createdAtMs: atMs,
      updatedAtMs: atMs,
    };
    if (await cancellations.insert(cancellation, dueNowMs())) {
      wake();
      return cancellation;
    }
    return (await cancellations.findOne(companyId, id)) ?? cancellation;
  };
}
