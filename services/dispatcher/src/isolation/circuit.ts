import type { Outcome, Trigger } from '@posthorn/domain/delivery/delivery.ts';
import type { CircuitOwner, CircuitTimes } from '@posthorn/platform/redis/open-circuits.ts';
import type { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import type { CircuitView } from './gate.ts';

/**
 * A circuit opens when more than half of the attempts of the last two minutes failed, and there were
 * at least ten. opossum applies the rule at each failure. What counts as an
 * attempt and as a failure is decided by `countsAsFailure`; successes from before the first failure
 * are counted as far as `seededSuccesses` says.
 */
export const OPENS_WHEN = {
  windowMs: 120_000,
  /** The window moves on by one bucket at a time. */
  buckets: 4,
  minAttempts: 10,
  failedAbovePercent: 50,
};

/** The outcome of an attempt, as the circuit of its endpoint counts it. */
export interface CircuitReport {
  outcome: Outcome;
  /** It said when to come again: a 429 or 503 with a Retry-After above 0. */
  asksForPause: boolean;
  /** Attempts of its endpoint that succeeded in the last second or two before it ended. */
  recentSuccesses: number;
}

const FAILURES: ReadonlySet<Outcome> = new Set<Outcome>([
  'timeout',
  'http_5xx',
  'http_429',
  'dns_error',
  'connect_error',
  'tls_error',
]);

/**
 * Returns whether the attempt counts as failed; null when it does not count at all, because nothing
 * was sent. An endpoint that rejects or redirects what it gets is up. So is one that asks for a pause,
 * and it is given that pause: otherwise a receiver that takes 300/s and refuses the rest would be left
 * alone for 30 s by its circuit instead of one second.
 */
export function countsAsFailure({ outcome, asksForPause }: CircuitReport): boolean | null {
  if (outcome === 'aborted' || outcome === 'token_failed') return null;
  return FAILURES.has(outcome) && !asksForPause;
}

const MAX_SEEDED = 200;

/**
 * Returns how many successes a circuit starts with. A circuit is created at the first failure, so
 * without them 20 broken connections among 1,000 attempts would open it.
 */
export function seededSuccesses({ recentSuccesses }: CircuitReport): number {
  return Math.min(recentSuccesses, MAX_SEEDED);
}

/** Why an attempt cannot be made now. */
export interface CircuitBlock {
  /** When to come again, in milliseconds since 1970. */
  untilMs: number;
  /** When the probe that is under way began; null when the circuit waits for the time of its next one. */
  probeSinceMs: number | null;
}

/**
 * For how long a circuit must have been open before an attempt of this trigger may be its probe
 * ahead of time. Somebody waits for the result of a test. Resends come by the thousand, and would use
 * up their attempts on a dead endpoint.
 */
const EARLY_PROBE_AFTER_MS: Record<Trigger, number> = {
  test: 0,
  resend: 5_000,
  first: Infinity,
  retry: Infinity,
};

/**
 * Returns null when the attempt may be made now: the circuit is closed, or the attempt may be its
 * probe. `resetMs` is how long an open circuit waits for its probe.
 */
export function blockOf(
  circuit: Circuit | undefined,
  trigger: Trigger,
  { nowMs, resetMs }: { nowMs: () => number; resetMs: number },
): CircuitBlock | null {
  if (!circuit || circuit.state() === 'closed') return null;
  const probeSinceMs = circuit.probeSinceMs();
  if (probeSinceMs !== null) return { untilMs: nowMs() + resetMs, probeSinceMs };
  const openForMs = nowMs() - (circuit.probeAtMs() - resetMs);
  const mayProbe = circuit.state() === 'half_open' || openForMs >= EARLY_PROBE_AFTER_MS[trigger];
  return mayProbe ? null : { untilMs: circuit.probeAtMs(), probeSinceMs };
}

/** After this time the attempt is made whatever the circuit says, so that every delivery ends. */
const MADE_ANYWAY_AFTER_MS = 12 * 3_600_000;
/** Each deferral is this many times as long as the attempt has waited so far, within those twelve hours. */
const GROWTH = 3;

const CLOSED: CircuitView = { kind: 'closed' };

/**
 * Returns the circuit as the gate sees it for one attempt, with the time for which it defers that
 * attempt. The time grows, so that the backlog of a dead endpoint is copied a few times a day and not
 * all the time. `deferredSinceMs` is null for an attempt that no circuit has deferred yet. Times are
 * milliseconds since 1970.
 */
export function circuitViewOf(
  block: CircuitBlock | null,
  deferredSinceMs: number | null,
  nowMs: number,
): CircuitView {
  const waitedMs = nowMs - (deferredSinceMs ?? nowMs);
  if (!block || waitedMs >= MADE_ANYWAY_AFTER_MS) return CLOSED;
  const deferForMs = Math.max(
    block.untilMs - nowMs,
    Math.min(waitedMs * GROWTH, MADE_ANYWAY_AFTER_MS - waitedMs),
  );
  return block.probeSinceMs === null
    ? { kind: 'open', deferForMs }
    : { kind: 'probing', sinceMs: nowMs - block.probeSinceMs, deferForMs };
}

export type CircuitState = 'closed' | 'open' | 'half_open';

/** The circuit of one endpoint. Times are milliseconds since 1970. */
export interface Circuit {
  url: string;
  owner: CircuitOwner;
  state: () => CircuitState;
  /** When the next probe may be made; in the past once the circuit is half open. */
  probeAtMs: () => number;
  /** When it opened; 0 while it is closed. */
  sinceMs: () => number;
  /** Grows each time it opens: an attempt that began before the last opening says nothing about now. */
  openings: () => number;
  lastFailureMs: () => number;
  /** When the probe that is under way began; one at a time finds out whether an open circuit can close. */
  probeSinceMs: () => number | null;
  /** Returns a function to call when the probe is over. */
  beginProbe: () => () => void;
  /** Counts an attempt that was made while the circuit was closed. */
  countAttempt: (hasFailed: boolean) => Promise<void>;
  /** Applies the outcome of a probe: closes, or stays open for another reset. */
  endProbe: (hasFailed: boolean) => void;
  /** Frees the timers of opossum; a circuit dropped without it would leak. */
  shutDown: () => void;
}

/** Called when the circuit changes. */
interface CircuitChanges {
  onOpen: (times: CircuitTimes) => void;
  /** A probe failed: the circuit was open before, and is open until the next one. */
  onStayOpen: (times: CircuitTimes) => void;
  onClose: () => void;
}

interface CircuitOptions extends CircuitChanges {
  url: string;
  owner: CircuitOwner;
  /** How long an open circuit waits before its probe. */
  resetMs: number;
  nowMs: () => number;
  /** One timer moves the windows of all circuits, and bounds the times of their probes. */
  rotation: EventEmitter;
  /** When given, the circuit starts open, as its former owner had it. */
  inherited?: CircuitTimes | undefined;
}

/** opossum's own defaults would open at the first failure. */
const OPOSSUM_OPTIONS = {
  volumeThreshold: OPENS_WHEN.minAttempts,
  errorThresholdPercentage: OPENS_WHEN.failedAbovePercent,
  rollingCountTimeout: OPENS_WHEN.windowMs,
  rollingCountBuckets: OPENS_WHEN.buckets,
  timeout: false,
  enableSnapshots: false,
  rollingPercentilesEnabled: false,
  // The longest that a timer can be: opossum never makes the circuit half open by itself.
  resetTimeout: 2_147_483_647,
} as const;

/**
 * The part of opossum here: it counts successes and failures in a rolling window, applies the rule of
 * OPENS_WHEN to them, and keeps the state closed or open.
 *
 * The parts that are not its own here:
 * - It does not run the attempts. Only their outcomes are fired. With attempts inside, a probe that
 *   hangs would block its half-open state for ever, and an attempt that began before the opening and
 *   succeeds late would close the circuit.
 * - It does not time the probe. The time of the probe is kept here, so that it can be handed over to
 *   the next owner of the partition. Its half-open state is therefore never entered.
 * - Its timeout, percentiles and snapshots are off: the sender has its own deadline, and they cost
 *   memory for each circuit.
 */
export function createCircuit(options: CircuitOptions): Circuit {
  const { nowMs, resetMs, rotation } = options;
  const opossum = createOpossum(rotation);
  let { probeAtMs, sinceMs } = options.inherited ?? { probeAtMs: 0, sinceMs: 0 };
  let openings = 0;
  let probeSinceMs: number | null = null;
  let lastFailureMs = nowMs();
  if (options.inherited) opossum.open();
  const waitForProbe = (report: (times: CircuitTimes) => void): void => {
    openings += 1;
    probeAtMs = nowMs() + resetMs;
    report({ probeAtMs, sinceMs });
  };
  /** No probe is more than one reset away; a later time means that the clock was set back. */
  const boundedProbeAtMs = (): number => Math.min(probeAtMs, nowMs() + resetMs);
  const keepBound = (): void => void (probeAtMs = boundedProbeAtMs());
  rotation.on('rotate', keepBound);
  opossum.on('open', () => {
    sinceMs = nowMs();
    waitForProbe(options.onOpen);
  });
  opossum.on('close', options.onClose);
  return {
    url: options.url,
    owner: options.owner,
    probeSinceMs: () => probeSinceMs,
    beginProbe() {
      probeSinceMs = nowMs();
      return () => void (probeSinceMs = null);
    },
    state: () => (opossum.closed ? 'closed' : boundedProbeAtMs() > nowMs() ? 'open' : 'half_open'),
    probeAtMs: boundedProbeAtMs,
    sinceMs: () => sinceMs,
    openings: () => openings,
    lastFailureMs: () => lastFailureMs,
    async countAttempt(hasFailed) {
      if (hasFailed) lastFailureMs = nowMs();
      await opossum.fire(hasFailed).catch(() => undefined);
    },
    endProbe(hasFailed) {
      if (hasFailed) {
        lastFailureMs = nowMs();
        waitForProbe(options.onStayOpen);
      } else opossum.close();
    },
    shutDown: () => {
      rotation.off('rotate', keepBound);
      opossum.shutdown();
    },
  };
}

function createOpossum(rotation: EventEmitter): CircuitBreaker<[boolean], void> {
  return new CircuitBreaker(resolveOrReject, {
    ...OPOSSUM_OPTIONS,
    rotateBucketController: rotation,
  });
}

function resolveOrReject(hasFailed: boolean): Promise<void> {
  return hasFailed ? Promise.reject(new Error('the attempt failed')) : Promise.resolve();
}
