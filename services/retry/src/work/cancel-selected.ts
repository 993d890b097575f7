import {
  type FilterCancellation,
  stepAfter,
} from '@posthorn/domain/delivery/filter-cancellation.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { FilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import {
  allCheckedToMs,
  type MessageChecks,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import {
  cancelledByClient,
  type SelectedDeliveries,
} from '@posthorn/platform/mongo/messages/selected-deliveries.ts';
import type { Claimed, WorkNotes } from '@posthorn/platform/mongo/work-notes.ts';
import {
  type ClaimedWork,
  type ClaimedWorkDeps,
  createClaimedWork,
  type WorkPlace,
} from '@posthorn/platform/work/claimed-work.ts';
import type { RetryMetrics } from '../metrics.ts';

export interface CancelSelectedDeps extends Pick<
  ClaimedWorkDeps<FilterCancellation>,
  'newClaim' | 'nowMs' | 'sleep'
> {
  cancellations: Pick<FilterCancellations, 'beginPage' | 'endPage' | 'finish'> &
    WorkNotes<FilterCancellation>;
  selected: SelectedDeliveries;
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  sequences: Pick<SequenceStore, 'makeDueOf'>;
  checks: Pick<MessageChecks, 'positions'>;
  metrics: Pick<RetryMetrics, 'finished'>;
  logger: ClaimedWorkDeps<FilterCancellation>['logger'] & {
    info: (fields: object, message: string) => void;
  };
}

const SLOTS = { ofAll: 20, ofCompany: 4 };
/** A page takes 20 to 50 ms: a million deliveries take about half a minute. */
const PAGE = 1_000;
/** How long one keeps its slot while others wait for one. */
const SLICE_MS = 3_000;
/**
 * A dispatcher that cannot follow changes learns of a cancellation within two seconds, and records an attempt that fails
 * until then as pending: what is recorded is looked through again after this time.
 */
export const RECORDED_LATE_MS = 10_000;

/** Stores what clients cancel by a filter, page by page (docs/decisions/0064-a-cancellation-by-filter-is-a-note.md). */
export function createCancelSelected(deps: CancelSelectedDeps): ClaimedWork {
  return createClaimedWork({
    ...deps,
    name: 'cancellations',
    notes: deps.cancellations,
    slots: SLOTS,
    fieldsOf: ({ id: cancellationId }) => ({ cancellationId }),
    work: (note, place) => cancelAll(deps, note, place),
  });
}

type Note = Claimed<FilterCancellation>;

async function cancelAll(
  deps: CancelSelectedDeps,
  claimed: Note,
  { signal, isWanted }: WorkPlace,
): Promise<number | null> {
  const { nowMs } = deps;
  const yieldAtMs = nowMs() + SLICE_MS;
  for (let note = claimed; ;) {
    signal.throwIfAborted();
    const lateAtMs = note.createdAtMs + RECORDED_LATE_MS;
    if (note.step === 'recorded_late' && note.before === null && nowMs() < lateAtMs)
      return lateAtMs;
    const cancelled = await cancelPage(deps, note);
    // Another process has claimed it while this one was suspended, and goes on with it.
    if (cancelled === 'lost') return nowMs();
    if (cancelled === 'done') return null;
    note = cancelled;
    if (nowMs() >= yieldAtMs && isWanted()) return nowMs();
  }
}

/** Cancels one page. Returns the note behind it, `done` behind the last one, and `lost` when another process has the note. */
async function cancelPage(deps: CancelSelectedDeps, note: Note): Promise<Note | 'done' | 'lost'> {
  const { cancellations, selected, metrics, nowMs } = deps;
  const read = note.step === 'unrecorded' ? readUnrecorded : readRecorded;
  const { ids, before, cancel } = await read(deps, note);
  // A page that a killed process has begun is counted with what it had found.
  const page = [...new Set([...note.page, ...ids])];
  if (page.length > note.page.length && !(await cancellations.beginPage(note, page))) return 'lost';
  await cancel();
  // What waits behind one with an ordering key goes on.
  if (page.length > 0) await deps.sequences.makeDueOf(page, nowMs());
  const cancelled = page.length === 0 ? 0 : await selected.countCancelled(note.companyId, page);
  metrics.finished.inc({ result: 'cancelled' }, cancelled);
  const step = before === null ? stepAfter(note.step, note.filter) : note.step;
  const end = { cancelled, before, step: step ?? note.step, atMs: nowMs() };
  if (!(await cancellations.endPage(note, end))) return 'lost';
  const next = { ...note, ...end, page: [], cancelled: note.cancelled + cancelled };
  if (step !== null) return next;
  await cancellations.finish(next, nowMs());
  const { id: cancellationId, companyId } = note;
  deps.logger.info(
    { cancellationId, companyId, cancelled: next.cancelled },
    'cancelled the deliveries that a client has selected',
  );
  return 'done';
}

interface ReadPage {
  ids: string[];
  /** Where the next page begins; null when none is left. */
  before: string | null;
  /** May be repeated. */
  cancel: () => Promise<unknown>;
}

async function readRecorded(
  { selected, nowMs }: CancelSelectedDeps,
  note: Note,
): Promise<ReadPage> {
  const step = { before: note.before ?? undefined, limit: PAGE };
  const { found, before } = await selected.recorded(note, 'pending', step);
  const ids = found.map(({ id }) => id);
  return { ids, before, cancel: () => selected.cancel(note.companyId, ids, nowMs()) };
}

async function readUnrecorded(
  { selected, deliveries, checks, nowMs }: CancelSelectedDeps,
  note: Note,
): Promise<ReadPage> {
  const sinceMs = allCheckedToMs(await checks.positions());
  const atMs = nowMs();
  const step = { before: note.before ?? undefined, limit: PAGE, sinceMs, atMs };
  const { found, before } = await selected.unrecorded(note, step);
  const cancelled = found.map((each) => cancelledByClient(each, atMs));
  return {
    ids: found.map(({ id }) => id),
    before,
    // One that gets its document meanwhile is found by the next step.
    cancel: () => (cancelled.length > 0 ? deliveries.insertAll(cancelled) : Promise.resolve()),
  };
}
