import { MAX_HOLD_MS } from '@posthorn/domain/schedule/retry-after.ts';
import { urlHashOf } from '@posthorn/platform/redis/endpoint-flows.ts';

/** What is left of a hold that a former owner was asked for. */
export interface HandedOverHold {
  forMs: number;
  /** Of the URL whose host asked for it; null from a dispatcher of an earlier version. */
  urlHash: string | null;
}

interface InheritedHold {
  /** Monotonic, milliseconds. */
  untilMs: number;
  urlHash: string | null;
}

/** Holds that former owners were asked for, by webhook id. */
export type InheritedHolds = ReadonlyMap<string, InheritedHold>;

/** Of more former owners' holds, or open circuits, the rest are forgotten, so that they do not fill the memory. */
export const MAX_INHERITED = 50_000;
/** What one of them takes: its id, its time and the hash of a URL. */
export const INHERITED_BYTES = 200;

/** The clock of a former owner may be ahead of ours by any time: an hour is left at most. */
export function inheritedHolds(
  handedOver: ReadonlyMap<string, HandedOverHold>,
  nowMs: number,
): InheritedHolds {
  const kept = [...handedOver].slice(0, MAX_INHERITED);
  const all = kept.map(([id, { forMs, urlHash }]) => {
    return [id, { untilMs: nowMs + Math.min(forMs, MAX_HOLD_MS), urlHash }] as const;
  });
  return new Map(all);
}

/** Returns when the inherited hold of the endpoint ends, monotonic; 0 without one, or when it is that of another URL. */
export function inheritedUntilMs(
  holds: InheritedHolds,
  { webhookId, url }: { webhookId: string; url: string },
): number {
  const hold = holds.get(webhookId);
  if (!hold) return 0;
  return hold.urlHash === null || hold.urlHash === urlHashOf(url) ? hold.untilMs : 0;
}
