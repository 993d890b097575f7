import { firstIdAt, isId, timeMsOf } from '@posthorn/domain/ids.ts';
import type { KeptFields } from '@posthorn/domain/message-fields.ts';
import { charsOfMessage, type Message } from '@posthorn/domain/message.ts';
import type { KnownPublisher } from '@posthorn/platform/mongo/messages/publishers.ts';

/** The facts that the sweep has read about a publisher. Times are milliseconds of the monotonic clock. */
export interface Observation {
  heartbeatAtMs: number;
  /** Since when its heartbeat has been that one. */
  unchangedSinceMs: number;
  /**
   * When Kafka took its oldest unpublished message from the sweep, and its watermark then; null again when the gateway
   * goes on. The watermark alone does not show that: it may stand for hours before a company that waits for its budget.
   */
  helped: { watermark: string; atMs: number } | null;
  /** When the sweep last found nothing left to publish. */
  emptyAtMs: number | null;
  /** Where a scan continues that did not reach the newest message; null when the next one starts over. */
  readTo: string | null;
  /** The messages published while further ones could come; a scan after that begins at the watermark again. */
  publishedEarly: EarlyIds;
  /** Whether that scan has reached the newest message. */
  isScannedAgain: boolean;
}

/** Ids of messages, as many as the budget allows. */
interface EarlyIds {
  add: (ids: readonly string[]) => void;
  has: (id: string) => boolean;
}

/** 20 s of a sweep at 10,000/s take about 20 MB. Those beyond it are published twice, and the dispatcher looks them up. */
const MAX_EARLY_IDS = 200_000;

function createEarlyIds(): EarlyIds {
  const early = new Set<string>();
  return {
    add(ids) {
      for (const id of ids) if (early.size < MAX_EARLY_IDS) early.add(id);
    },
    has: (id) => early.has(id),
  };
}

/**
 * - `leave`: its gateway publishes, or the sweep has just scanned.
 * - `take_over_silent`: its gateway is dead.
 * - `help`: its gateway has waited for Kafka or the store for a minute. Publish its oldest message, to see whether they
 *   are away for all.
 * - `take_over_stuck`: Kafka took that message, and still the gateway waits.
 * - `sweep`: the sweep owns its backlog.
 */
export type SweepStep = 'leave' | 'take_over_silent' | 'help' | 'take_over_stuck' | 'sweep';

/** A gateway sends a heartbeat every second, and publishes nothing when none was stored for 8 s. */
const SILENT_MS = 10_000;
/**
 * The heartbeat must also have been the same for so long while this process could read it: after an
 * outage of MongoDB every heartbeat is old, and a living gateway needs a moment to send the next.
 */
const WATCHED_MS = 4_000;
/**
 * A gateway that is alive may wait for one request to Kafka for so long. Its messages may wait for longer, for the
 * budgets of their companies.
 */
const STUCK_MS = 60_000;
/** It publishes within seconds once Kafka is back. */
const AFTER_HELP_MS = 20_000;
/**
 * A scan reads all messages since the last one that was found, so the sweep does not scan in every tick.
 */
const SCAN_AGAIN_MS = 10_000;
/**
 * An insert that was running when the gateway died ends within 20 s, the timeout of the socket. A scan that
 * began before starts over in each tick, and the first one after it begins at the watermark: such an insert may be
 * behind the place where the scan was, and before a later message that was published already.
 */
const INSERTS_END_MS = 30_000;

export function observe(
  publisher: KnownPublisher,
  before: Observation | undefined,
  nowMs: number,
): Observation {
  const { heartbeatAtMs, watermark } = publisher;
  const isSame = before?.heartbeatAtMs === heartbeatAtMs;
  const isHelped = isStuck(publisher) && before?.helped?.watermark === watermark;
  return {
    heartbeatAtMs,
    unchangedSinceMs: isSame ? before.unchangedSinceMs : nowMs,
    helped: isHelped ? before.helped : null,
    emptyAtMs: before?.emptyAtMs ?? null,
    // A gateway that was suspended hands over after the take-over, and may have stored more before that.
    readTo: isSame ? before.readTo : null,
    publishedEarly: before?.publishedEarly ?? createEarlyIds(),
    isScannedAgain: isSame ? before.isScannedAgain : false,
  };
}

export function stepFor(publisher: KnownPublisher, seen: Observation, nowMs: number): SweepStep {
  const { isTakenOver, silentMs } = publisher;
  const isSilent = silentMs > SILENT_MS;
  if (isTakenOver) return isSilent && isScanDue(seen, nowMs) ? 'sweep' : 'leave';
  if (isSilent) return nowMs - seen.unchangedSinceMs >= WATCHED_MS ? 'take_over_silent' : 'leave';
  if (!isStuck(publisher)) return 'leave';
  if (!seen.helped) return 'help';
  return nowMs - seen.helped.atMs >= AFTER_HELP_MS ? 'take_over_stuck' : 'leave';
}

const isStuck = ({ stuckMs }: KnownPublisher): boolean => stuckMs !== null && stuckMs > STUCK_MS;

function isScanDue({ emptyAtMs }: Observation, nowMs: number): boolean {
  return emptyAtMs === null || nowMs - emptyAtMs >= SCAN_AGAIN_MS;
}

/** The page that the sweep publishes for a publisher: its messages after `afterId`. */
export interface Backlog {
  publisherId: string;
  afterId: string;
  /** How many messages the next page has at most. */
  limit: number;
  /** Whether no further message of the publisher can come. */
  isComplete: boolean;
}

const FIRST_PAGE = 200;
const LARGEST_PAGE = 1_000;
const PAGE_CHARS = 8_388_608;

/** How many messages of all publishers a page reads at most: 50,000 of 1 KiB took 0.15 s. */
export const MAX_READ = 50_000;

export function backlogOf(
  publisher: KnownPublisher,
  { readTo, isScannedAgain }: Pick<Observation, 'readTo' | 'isScannedAgain'>,
): Backlog {
  const isComplete = publisher.silentMs > INSERTS_END_MS;
  const firstId = isComplete && !isScannedAgain ? publishedUpTo(publisher) : sweptUpTo(publisher);
  const afterId = (isComplete ? readTo : null) ?? firstId;
  return { publisherId: publisher.id, afterId, limit: FIRST_PAGE, isComplete };
}

/**
 * Returns how many messages like those of this page the next one may have: as many as 8 MiB hold. A dead
 * gateway left 118,690 messages of 1 KiB, and five requests for each 200 of them took 82 s.
 */
export function nextPageLimit(page: readonly (Pick<Message, 'payload'> & KeptFields)[]): number {
  const chars = page.reduce((sum, message) => sum + charsOfMessage(message), 0);
  const fitting = Math.floor((PAGE_CHARS * page.length) / Math.max(1, chars));
  return Math.max(1, Math.min(fitting, LARGEST_PAGE));
}

/** All messages of the publisher up to the returned id are published. */
function sweptUpTo(publisher: KnownPublisher): string {
  const published = publishedUpTo(publisher);
  return publisher.sweptTo > published ? publisher.sweptTo : published;
}

/** Everything of the publisher up to the returned id is published, and no insert can end below it. */
function publishedUpTo({ id, watermark }: KnownPublisher): string {
  const first = isId('gw', id) ? firstIdAt('msg', timeMsOf(id)) : '';
  return watermark > first ? watermark : first;
}
