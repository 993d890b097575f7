import type { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import type { CircuitOwner, CircuitTimes } from '@posthorn/platform/redis/open-circuits.ts';
import type { CircuitChanges } from './report-circuit-changes.ts';
import { OPENS_WHEN } from './when-circuit-opens.ts';

export type CircuitState = 'closed' | 'open' | 'half_open';

export interface Probe {
  sinceMs: number;
  /** Resolves when it is over. */
  ended: Promise<void>;
}

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
  /** The probe that is under way; one at a time finds out whether an open circuit can close. */
  probe: () => Probe | null;
  /** Returns a function to call when the probe is over. */
  beginProbe: () => () => void;
  /** Counts an attempt that was made while the circuit was closed. */
  countAttempt: (hasFailed: boolean) => Promise<void>;
  /** Applies the outcome of a probe: closes, or stays open for another reset. */
  endProbe: (hasFailed: boolean) => void;
  /** Frees what opossum holds; a circuit dropped without it would leak. */
  shutDown: () => void;
}

export interface CircuitOptions extends CircuitChanges {
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
 * What opossum does here: it counts successes and failures in a rolling window, applies the rule of
 * when-circuit-opens.ts to them, and keeps the state closed or open.
 *
 * What it does not do here:
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
  const opossum = new CircuitBreaker(resolveOrReject, {
    ...OPOSSUM_OPTIONS,
    rotateBucketController: rotation,
  });
  let { probeAtMs, sinceMs } = options.inherited ?? { probeAtMs: 0, sinceMs: 0 };
  let openings = 0;
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
    ...createProbe(nowMs),
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
      if (!hasFailed) opossum.close();
      else {
        lastFailureMs = nowMs();
        waitForProbe(options.onStayOpen);
      }
    },
    shutDown: () => {
      rotation.off('rotate', keepBound);
      opossum.shutdown();
    },
  };
}

function resolveOrReject(hasFailed: boolean): Promise<void> {
  return hasFailed ? Promise.reject(new Error('the attempt failed')) : Promise.resolve();
}

function createProbe(nowMs: () => number): Pick<Circuit, 'probe' | 'beginProbe'> {
  let probe: Probe | null = null;
  return {
    probe: () => probe,
    beginProbe() {
      let end: () => void = () => undefined;
      const ended = new Promise<void>((resolve) => (end = resolve));
      probe = { sinceMs: nowMs(), ended };
      return () => {
        probe = null;
        end();
      };
    },
  };
}
