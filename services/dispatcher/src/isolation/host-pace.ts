import { walkInSlices } from '@posthorn/platform/async/loop.ts';

/*
 * Many webhooks of one company may lead to one host. A rate limit of each of them would not protect that
 * host: a company could send it whatever its webhooks together may send.
 */

/** The attempts of one company to one host. Their starts are spaced evenly, but for those of TOGETHER_MS. */
export interface HostPace {
  /** The time between two starts, in milliseconds. */
  spacingMs: number;
  /** The first start that is not taken yet, monotonic. */
  freeMs: number;
  /** Turns up to here (milliseconds since 1970) are booked for deferred attempts. */
  bookedUntilMs: number;
}

/** The part of an endpoint that its host limits. */
export interface PacedByHost {
  /** Null without a limit. */
  host: HostPace | null;
  /** The start that is reserved for an attempt that waits here, monotonic; null when none is. */
  hostStartMs: number | null;
}

/**
 * The attempts of so much time may start together. A busy event loop starts some only every few milliseconds: with one
 * start at a time, an endpoint would get 200 a second of a limit of 1,500. Up to ten a second, each start is by itself.
 */
const TOGETHER_MS = 100;

/**
 * A reserved start that is not used within this time is lost. Otherwise endpoints whose attempts had to
 * wait for something else could use many old starts at once.
 */
const RESERVED_FOR_MS = 1_000;

/** The paces of all companies to their hosts. */
export interface HostPaces {
  /** Returns the pace of this host (`hostKeyOf`), added when it is new; null without a limit. */
  of: (hostKey: string) => HostPace | null;
  /**
   * Forgets the hosts about which nothing must be kept, of a slice of all hosts with each call. A host for which
   * attempts wait at one of these endpoints is kept: otherwise they and the attempts that arrive would have a pace each.
   * `epochMs`: since 1970.
   */
  forgetIdle: (
    waiting: Iterable<PacedByHost>,
    now: { monotonicMs: number; epochMs: number },
  ) => void;
}

/** `perSecond`: attempts of one company to one host; 0 for no limit. */
export function createHostPaces(perSecond: number): HostPaces {
  const hosts = new Map<string, HostPace>();
  const walk = walkInSlices(hosts);
  return {
    of(key) {
      if (perSecond === 0) return null;
      const host = hosts.get(key) ?? createHostPace(perSecond);
      hosts.set(key, host);
      return host;
    },
    forgetIdle(waiting, { monotonicMs, epochMs }) {
      if (hosts.size === 0) return;
      const awaited = new Set<HostPace | null>();
      for (const { host } of waiting) awaited.add(host);
      walk((host, key) => {
        if (!awaited.has(host) && isHostIdle(host, monotonicMs, epochMs)) hosts.delete(key);
      });
    },
  };
}

/** Names the host of a URL for one company. With dots at its end, a name leads to the same addresses. */
export function hostKeyOf(companyId: string, url: string): string {
  return `${companyId} ${new URL(url).hostname.replace(/\.+$/, '')}`;
}

export function createHostPace(attemptsPerSecond: number): HostPace {
  return { spacingMs: 1_000 / attemptsPerSecond, freeMs: 0, bookedUntilMs: 0 };
}

/** Returns how long until an attempt of the endpoint may start, in milliseconds; 0 when it may now. */
export function untilHostAllowsMs(endpoint: PacedByHost, nowMs: number): number {
  if (!endpoint.host) return 0;
  const startMs = reservedStartMs(endpoint, nowMs) ?? endpoint.host.freeMs - aheadMs(endpoint.host);
  return Math.max(0, startMs - nowMs);
}

/**
 * Returns the time between two starts of one endpoint, in milliseconds: while others wait for the host
 * too, each of them starts once before it starts again.
 */
export function hostSpacingMs({ host }: PacedByHost, nowMs: number): number {
  return host ? Math.max(host.spacingMs, host.freeMs - aheadMs(host) - nowMs) : 0;
}

/**
 * Reserves the next free start for an attempt that waits. Without reservations, each start would wake all
 * endpoints of the host, and one of them would be chosen by chance.
 */
export function reserveHostStart(endpoint: PacedByHost, nowMs: number): void {
  if (!endpoint.host || reservedStartMs(endpoint, nowMs) !== null) return;
  endpoint.hostStartMs = takeStart(endpoint.host, nowMs);
}

/** Counts an attempt that starts now: on the reserved start, or else on the next free one. */
export function advanceHostPace(endpoint: PacedByHost, nowMs: number): void {
  if (!endpoint.host) return;
  if (reservedStartMs(endpoint, nowMs) === null) takeStart(endpoint.host, nowMs);
  endpoint.hostStartMs = null;
}

/** True while attempts are deferred to reservations at the host: its limit is what spaces them. */
export function hasReservationsAtHost({ host }: PacedByHost, epochMs: number): boolean {
  return host !== null && host.bookedUntilMs > epochMs;
}

/** True when nothing about the host must be kept. `nowMs` is monotonic, `epochMs` since 1970. */
export function isHostIdle(host: HostPace, nowMs: number, epochMs: number): boolean {
  return host.freeMs + RESERVED_FOR_MS < nowMs && host.bookedUntilMs < epochMs;
}

function reservedStartMs({ hostStartMs }: PacedByHost, nowMs: number): number | null {
  return hostStartMs !== null && hostStartMs + RESERVED_FOR_MS >= nowMs ? hostStartMs : null;
}

function takeStart(host: HostPace, nowMs: number): number {
  const startMs = Math.max(host.freeMs, nowMs);
  host.freeMs = startMs + host.spacingMs;
  return startMs - aheadMs(host);
}

/** How much before its position in the even spacing a start may be. */
function aheadMs({ spacingMs }: HostPace): number {
  return Math.max(0, TOGETHER_MS - spacingMs);
}
