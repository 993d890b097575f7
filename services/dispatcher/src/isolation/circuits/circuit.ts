import type { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';

export type CircuitState = 'closed' | 'open' | 'half_open';

export interface Probe {
  sinceMs: number;
  /** Resolves when it is over. */
  ended: Promise<void>;
}

/** The circuit of one endpoint. Times are milliseconds since 1970. */
export interface Circuit {
  url: string;
  state: () => CircuitState;
  /** When the next probe may be made; in the past once it is half open. */
  probeAtMs: () => number;
  /** Grows with each opening: an attempt begun before the newest says nothing about the present. */
  openings: () => number;
  lastFailureMs: () => number;
  /** One attempt at a time finds out whether an open circuit can close. */
  probe: () => Probe | null;
  /** Answers what to call at its end. */
  beginProbe: () => () => void;
  /** What came of an attempt made while it was closed. */
  count: (hasFailed: boolean) => Promise<void>;
  /** What came of a probe. */
  judge: (hasFailed: boolean) => void;
  /** Frees what opossum holds; a circuit that was dropped without it would leak. */
  shutDown: () => void;
}

export interface CircuitOptions {
  url: string;
  /** How long an open circuit waits before its probe. */
  resetMs: number;
  nowMs: () => number;
  /** One timer turns the windows of all circuits. */
  rotation: EventEmitter;
  onOpen: (probeAtMs: number) => void;
  onClose: () => void;
  /** Begins open, with its probe at this time. */
  probeAtMs?: number;
}

/** Ten attempts in two minutes, more than half of them failed. opossum's own defaults open at the first. */
export const WINDOW_MS = 120_000;
export const BUCKETS = 4;
const RULE = {
  volumeThreshold: 10,
  errorThresholdPercentage: 50,
  rollingCountTimeout: WINDOW_MS,
  rollingCountBuckets: BUCKETS,
  timeout: false,
  enableSnapshots: false,
  rollingPercentilesEnabled: false,
  // The longest a timer can be: the time of the probe is ours, so that it can be handed over.
  resetTimeout: 2_147_483_647,
} as const;

/**
 * opossum counts and decides when to open. Attempts run outside it and only their outcomes are
 * fired: a probe that hangs would block its half-open state for ever, and an attempt begun before
 * the opening that succeeds late would close it.
 */
export function createCircuit(options: CircuitOptions): Circuit {
  const { nowMs, resetMs, rotation } = options;
  const breaker = new CircuitBreaker(settle, { ...RULE, rotateBucketController: rotation });
  let probeAtMs = options.probeAtMs ?? 0;
  let openings = 0;
  let lastFailureMs = nowMs();
  if (options.probeAtMs !== undefined) breaker.open();
  const waitForProbe = (): void => {
    openings += 1;
    probeAtMs = nowMs() + resetMs;
    options.onOpen(probeAtMs);
  };
  /** No probe is further away than one reset: beyond that the clock was set back. */
  const probeTime = (): number => (probeAtMs = Math.min(probeAtMs, nowMs() + resetMs));
  breaker.on('open', waitForProbe);
  breaker.on('close', options.onClose);
  return {
    url: options.url,
    ...createProbe(nowMs),
    state: () => (breaker.closed ? 'closed' : probeTime() > nowMs() ? 'open' : 'half_open'),
    probeAtMs: probeTime,
    openings: () => openings,
    lastFailureMs: () => lastFailureMs,
    async count(hasFailed) {
      if (hasFailed) lastFailureMs = nowMs();
      await breaker.fire(hasFailed).catch(() => undefined);
    },
    judge(hasFailed) {
      if (!hasFailed) breaker.close();
      else {
        lastFailureMs = nowMs();
        waitForProbe();
      }
    },
    shutDown: () => {
      breaker.shutdown();
    },
  };
}

function settle(hasFailed: boolean): Promise<void> {
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
