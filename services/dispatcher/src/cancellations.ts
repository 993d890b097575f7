import {
  isCancelledBy,
  type StoppingCancellation,
} from '@posthorn/domain/delivery/filter-cancellation.ts';
import type { CancelReason } from '@posthorn/domain/delivery/delivery.ts';
import { CANCELLED_BY_CLIENT } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { FilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

/** The cancellations by filter of all companies that stop attempts: no attempt of what they select is made. */
export interface Cancellations {
  /**
   * Returns why a due attempt is not to be made; null when it may. `eventType` is that of its message, undefined while it is
   * not known.
   */
  reasonFor: (due: DueAttempt, eventType: string | undefined) => CancelReason | null;
  /** Reads them again, because one has begun or ended. */
  refresh: () => void;
  start: () => void;
  /** Reads them again, unless every change of them is known. When that fails, what is known stays. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

interface CancellationsDeps {
  cancellations: Pick<FilterCancellations, 'listStopping'>;
  /** Returns true while `refresh` is called for every one that begins. */
  areChangesFollowed: () => boolean;
  keepTrying: KeepTrying;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

/** While changes are not followed: then one is known within two seconds, as a changed webhook is. */
const EVERY_MS = 1_000;
/** One that has ended is forgotten by then. */
const READ_ALL_EVERY_MS = 60_000;
/** 5 MB. Those of the earliest, of more, are stored in the deliveries by then. */
const MOST = 10_000;

/**
 * The record of a first attempt is not looked up before it is sent, and an attempt may wait for its endpoint after it was, so
 * the dispatcher has to know what is cancelled. Nearly always there is nothing, and an attempt costs a look at an empty map.
 * Resolves when the cancellations are read: before that nothing may be sent.
 */
export async function openCancellations({
  cancellations,
  areChangesFollowed,
  keepTrying,
  nowMs,
  logger,
}: CancellationsDeps): Promise<Cancellations> {
  let byCompany: ReadonlyMap<string, readonly StoppingCancellation[]> = new Map();
  const version = { current: 1, read: 0 };
  let readAtMs = 0;

  async function read(): Promise<void> {
    // One that begins during the read may not be in it.
    do {
      const { current } = version;
      readAtMs = nowMs();
      const stopping = await cancellations.listStopping(readAtMs, MOST);
      byCompany = Map.groupBy(stopping, ({ companyId }) => companyId);
      version.read = current;
    } while (version.read !== version.current);
  }

  await keepTrying('read the cancellations by filter', read);
  const { start, tick, stop } = createLoop({
    name: 'cancellations by filter',
    everyMs: EVERY_MS,
    run: async () => {
      const isOld = nowMs() - readAtMs >= READ_ALL_EVERY_MS;
      if (version.read === version.current && areChangesFollowed() && !isOld) return;
      await read();
    },
    logger,
  });
  return {
    reasonFor(due, eventType = '') {
      const ofCompany = byCompany.get(due.companyId);
      // A client asks for the resend of a delivery that has ended, such as one that was cancelled.
      if (!ofCompany || due.trigger === 'resend') return null;
      const isCancelled = ofCompany.some((each) => isCancelledBy(each, { ...due, eventType }));
      return isCancelled ? CANCELLED_BY_CLIENT : null;
    },
    refresh() {
      version.current += 1;
      void tick();
    },
    start,
    tick,
    stop,
  };
}
