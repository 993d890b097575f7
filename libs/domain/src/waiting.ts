/**
 * Why a pending delivery waits as a document, without a record in Kafka (docs/contract.md C24). `hold`: its webhook, its
 * app or its company is on hold. `order` and `time` are for deliveries behind others, and before their time.
 */
export const WAITING = ['hold', 'order', 'time'] as const;

export type Waiting = (typeof WAITING)[number];

/** The hold of a webhook or an app. Times are in milliseconds since 1970. */
export interface Hold {
  sinceMs: number;
  /** When it ends by itself; null for never. */
  untilMs: number | null;
  reason: string | null;
  /** The id of the API key, or of the link to the portal, that asked for it. */
  by: string;
}

/** The fields of a request for a hold. An end that is left out stays as it is, and null takes it away. */
export type AskedHold = Pick<Hold, 'reason' | 'by'> & Partial<Pick<Hold, 'untilMs'>>;

/** Returns the hold as it is to be stored; null when the one that lives has the same end and reason already. */
export function beginHold(seen: Hold | null, asked: AskedHold, nowMs: number): Hold | null {
  const begun = { sinceMs: nowMs, untilMs: null, ...asked };
  if (!seen || !isHolding(seen, nowMs)) return begun;
  const changed = { ...seen, ...asked };
  const isSame = seen.untilMs === changed.untilMs && seen.reason === changed.reason;
  return isSame ? null : changed;
}

/** The part of a cached webhook that changes with the hold of its app, and not with the app's other fields. */
export const holdSourceOf = (appId: string): string => `hold/${appId}`;

/** The states of what may hold a delivery back. */
export interface Holders {
  webhook: { held: Hold | null } | null;
  /** Null for a global webhook, and for an app that is not stored. */
  appHeld: Hold | null;
  isSuspended: boolean;
}

export function isHolding(hold: Hold | null, nowMs: number): boolean {
  return hold !== null && (hold.untilMs === null || hold.untilMs > nowMs);
}

/** Whether the deliveries of the webhook wait. A suspended company holds them as well. */
export function isOnHold({ webhook, appHeld, isSuspended }: Holders, nowMs: number): boolean {
  return isSuspended || isHolding(webhook?.held ?? null, nowMs) || isHolding(appHeld, nowMs);
}
