import { fateOfWaiting } from '@posthorn/domain/delivery/when-cancelled.ts';
import { holdSourceOf } from '@posthorn/domain/waiting.ts';
import type {
  WaitingOwner,
  WaitingDeliveries,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldNote, HoldNotes, HoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { Claimed } from '@posthorn/platform/mongo/work-notes.ts';
import {
  type ClaimedWork,
  type ClaimedWorkDeps,
  createClaimedWork,
  type WorkPlace,
} from '@posthorn/platform/work/claimed-work.ts';
import { Counter, type Registry } from 'prom-client';
import { type Released, releaseWebhook, type ReleaseDeps } from './release-webhook.ts';

export interface ReleaseNotesDeps
  extends
    Omit<ReleaseDeps, 'waiting' | 'holds'>,
    Pick<ClaimedWorkDeps<HoldNote>, 'newClaim' | 'logger'> {
  notes: Omit<HoldNotes, 'touch' | 'hasAny' | 'oldestMs'>;
  waiting: ReleaseDeps['waiting'] & Pick<WaitingDeliveries, 'webhooks'>;
  holds: HoldStates;
  resends: Pick<ResendStore, 'continueHeld'>;
  /** Goes on behind the exhausted deliveries of a webhook whose `ordering` was changed, or that was disabled. */
  freeKeys: (webhook: WaitingOwner) => Promise<void>;
  /** Begins the resends that are due. */
  wakeResends: () => void;
  /** Announces that the hold of a webhook or an app has ended by itself. */
  invalidate: Invalidate;
  logger: ReleaseDeps['logger'] & ClaimedWorkDeps<HoldNote>['logger'];
}

const WEBHOOKS_PAGE = 1_000;
/** A release that goes on keeps its slot for three seconds when others wait, so there are many. */
const SLOTS = { ofAll: 200, ofCompany: 100 };
/** A dispatcher knows of the end of a hold within two seconds, and records what it got before within some more. */
const LINGER_MS = 60_000;
/** Between two looks at a hold that lives: half of the time since it was touched, within these bounds. */
const LOOK_MS = { min: 1_000, max: 1_800_000 };
/** The same after a release that found an endpoint which fails. */
const QUIET_MS = { min: 5_000, max: 300_000 };

/**
 * Looks at the notes of holds when they are due, and releases what waits once the hold has ended. A note stays until a
 * minute after that, because a dispatcher may still make deliveries wait; what comes even later is found by the sweep of
 * waiting deliveries.
 */
export function createReleases(deps: ReleaseNotesDeps): ClaimedWork {
  return createClaimedWork({
    ...deps,
    name: 'releases of waiting deliveries',
    slots: SLOTS,
    work: (note, place) => lookAt(deps, note, place),
    fieldsOf: ({ id: holdOf }) => ({ holdOf }),
  });
}

export function createReleaseCounter(registry: Registry): ReleaseDeps['count'] {
  const released = new Counter({
    name: 'posthorn_waiting_released_total',
    help: 'Waiting deliveries whose attempts this process published after the end of a hold or a suspension.',
    registers: [registry],
  });
  return (deliveries) => {
    released.inc(deliveries);
  };
}

type Note = Claimed<HoldNote>;

/** Returns when the note is due again; null when it is removed. */
async function lookAt(
  deps: ReleaseNotesDeps,
  note: Note,
  place: WorkPlace,
): Promise<number | null> {
  const { notes, nowMs } = deps;
  const endsAtMs = await endOf(deps, note);
  if (endsAtMs !== null) {
    if (endsAtMs <= nowMs()) {
      await endHold(deps, note);
      return nowMs();
    }
    if (note.kind !== 'company' && endsAtMs === Infinity) await notes.noteOpenEnded(note);
    return Math.min(endsAtMs, nowMs() + within(LOOK_MS, (nowMs() - note.touchedAtMs) / 2));
  }
  await continueResends(deps, note);
  if (note.kind === 'webhook')
    await deps.freeKeys({ companyId: note.companyId, webhookId: note.id });
  const outcome = await release(deps, note, place);
  // One may have been put back meanwhile, by what it knew before.
  await continueResends(deps, note);
  const agoMs = nowMs() - note.touchedAtMs;
  // Another hold has a note of its own, which gives this webhook one again, but not with its rate.
  const isHeld = outcome === 'on_hold';
  const isOver = outcome === 'nothing' || (isHeld && note.ratePerSecond === null);
  if (!isOver || agoMs < LINGER_MS) return nowMs() + againAfterMs(outcome, agoMs);
  return (await notes.remove(note)) ? null : nowMs();
}

async function continueResends(
  { resends, wakeResends, nowMs }: ReleaseNotesDeps,
  { id, companyId, kind }: HoldNote,
): Promise<void> {
  const continued = await resends.continueHeld(companyId, kind === 'webhook' ? id : null, nowMs());
  if (continued) wakeResends();
}

/** When the hold ends by itself: Infinity for never, and for a suspension; null when there is none any more. */
async function endOf({ holds }: ReleaseNotesDeps, note: Note): Promise<number | null> {
  if (note.kind === 'company') return (await holds.isSuspended(note.companyId)) ? Infinity : null;
  const held = await holds.holdOf(note);
  return held === null ? null : (held.untilMs ?? Infinity);
}

/** The end is stored before the hold is removed: the looks that follow go on for a minute from this time. */
async function endHold(
  { notes, holds, nowMs, invalidate }: ReleaseNotesDeps,
  note: Note,
): Promise<void> {
  await notes.noteEnd(note, nowMs());
  if (!(await holds.clearEnded(note, nowMs()))) return;
  const { companyId, id } = note;
  await invalidate({ companyId, id }, { companyId, id: holdSourceOf(id) });
}

async function release(
  deps: ReleaseNotesDeps,
  note: Note,
  { signal, isWanted, wake }: WorkPlace,
): Promise<Released | 'expanded'> {
  const { id: webhookId, companyId } = note;
  if (note.kind === 'webhook') {
    return releaseWebhook(deps, { webhook: { companyId, webhookId }, isWanted, signal });
  }
  if ((await expand(deps, note, signal)) === 0) return 'nothing';
  wake();
  return 'expanded';
}

/** Gives each webhook that may be released now a note of its own. Returns how many got one. */
async function expand(deps: ReleaseNotesDeps, note: Note, signal: AbortSignal): Promise<number> {
  const { notes, holds, nowMs } = deps;
  let expanded = 0;
  for await (const some of inPages(webhooksOf(deps, note), WEBHOOKS_PAGE)) {
    signal.throwIfAborted();
    const holders = await holds.holdersOf(some);
    const free = some.filter(({ webhookId }) => {
      const known = holders.get(webhookId) ?? { webhook: null, appHeld: null, isSuspended: false };
      // Another hold lives, whose note expands in its turn.
      return fateOfWaiting(known, nowMs()).kind !== 'wait';
    });
    const ids = [...new Set(free.map(({ webhookId }) => webhookId))];
    if (ids.length > 0) expanded += await notes.expand(note, ids, nowMs());
  }
  return expanded;
}

/** Those of an app or a company that have waiting deliveries; one may come several times. */
async function* webhooksOf(
  { waiting, holds }: ReleaseNotesDeps,
  { id, companyId, kind }: HoldNote,
): AsyncGenerator<WaitingOwner> {
  if (kind === 'company') {
    yield* waiting.webhooks(companyId);
    return;
  }
  for (let afterId: string | undefined = ''; afterId !== undefined;) {
    const page: string[] = await holds.webhooksOfApp({ id, companyId }, afterId, WEBHOOKS_PAGE);
    if (page.length > 0) yield* waiting.webhooks(companyId, page);
    afterId = page.at(-1);
  }
}

async function* inPages<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<Item[]> {
  let page: Item[] = [];
  for await (const item of items) {
    page.push(item);
    if (page.length < size) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** After the end of the hold, `agoMs` ago. */
function againAfterMs(outcome: Released | 'expanded', agoMs: number): number {
  switch (outcome) {
    case 'yielded':
      return 0;
    case 'quiet':
      return within(QUIET_MS, agoMs / 4);
    case 'on_hold':
      return within(LOOK_MS, agoMs / 2);
    case 'expanded':
    case 'done':
    case 'nothing':
      return within({ min: LOOK_MS.min, max: LINGER_MS / 4 }, agoMs / 2);
  }
}

function within({ min, max }: { min: number; max: number }, ms: number): number {
  return Math.min(max, Math.max(min, ms));
}
