import {
  initialLimit,
  limitAfter,
  type EndedAttempt,
  type LimitBounds,
} from '../../services/dispatcher/src/isolation/endpoint/concurrency-limit.ts';

/** The limit of one endpoint, by one of the compared rules. */
export interface Rule {
  value: () => number;
  end: (attempt: EndedAttempt) => void;
}

export type RuleName = 'fixed 512' | 'AIMD' | 'Vegas' | 'Gradient2' | 'chosen';

export const RULES: Record<RuleName, (bounds: LimitBounds) => Rule> = {
  'fixed 512': () => ({ value: () => 512, end: () => undefined }),
  AIMD: createAimd,
  Vegas: createVegas,
  Gradient2: createGradient2,
  chosen: createChosen,
};

function createChosen(bounds: LimitBounds): Rule {
  let limit = initialLimit(bounds);
  return {
    value: () => limit.value,
    end(attempt) {
      limit = limitAfter(limit, attempt, bounds);
    },
  };
}

/** RFC 5681: slow start, halved at most once per round trip, then one more place per round trip. */
function createAimd(bounds: LimitBounds): Rule {
  let value = bounds.start;
  let threshold = Infinity;
  let decreasedMs = -Infinity;
  return {
    value: () => value,
    end({ verdict, startedMs, endedMs, running, isLimited }) {
      if (startedMs <= decreasedMs || verdict === 'neutral') return;
      if (verdict === 'congested') {
        value = within(value / 2, bounds);
        threshold = value;
        decreasedMs = endedMs;
      } else if (isLimited && running * 2 >= value) {
        value = within(value + (value < threshold ? 1 : 1 / value), bounds);
      }
    },
  };
}

/** VegasLimit of Netflix concurrency-limits, with its defaults; `log10` is at least 1 there too. */
function createVegas(bounds: LimitBounds): Rule {
  let value = bounds.start;
  let noLoadMs = Infinity;
  let samples = 0;
  return {
    value: () => value,
    end({ verdict, startedMs, endedMs, running }) {
      const step = Math.max(1, Math.floor(Math.log10(value)));
      if (verdict === 'congested') value = within(value - step, bounds);
      if (verdict !== 'success') return;
      const tookMs = Math.max(0.001, endedMs - startedMs);
      samples += 1;
      const isProbe = samples >= 0.75 * 30 * value;
      if (isProbe) samples = 0;
      if (isProbe || tookMs < noLoadMs) {
        noLoadMs = tookMs;
      } else if (running * 2 >= value) {
        const queue = Math.ceil(value * (1 - noLoadMs / tookMs));
        value = within(value + vegasStep(queue, step), bounds);
      }
    },
  };
}

function vegasStep(queue: number, step: number): number {
  if (queue <= step) return 6 * step;
  if (queue < 3 * step) return step;
  return queue > 6 * step ? -step : 0;
}

/**
 * Gradient2Limit of Netflix concurrency-limits with its defaults: windows of a second or ten samples
 * (WindowedLimit), a long average over 600 windows, a queue of four. It does not know refusals, and is
 * given the decrease of AIMD here; otherwise it would never shrink for a 429.
 */
function createGradient2(bounds: LimitBounds): Rule {
  let value = bounds.start;
  let decreasedMs = -Infinity;
  let long: { ms: number; windows: number } | null = null;
  let window = { sinceMs: 0, samples: 0, sumMs: 0, peak: 0 };

  function closeWindow(shortMs: number, peak: number): void {
    const windows = Math.min(600, (long?.windows ?? 0) + 1);
    const weight = windows <= 10 ? 1 / windows : 2 / (windows + 1);
    let ms = long ? long.ms + (shortMs - long.ms) * weight : shortMs;
    if (ms / shortMs > 2) ms *= 0.9;
    long = { ms, windows };
    if (peak < value / 2) return;
    const gradient = Math.max(0.5, Math.min(1, ms / shortMs));
    value = within(value * 0.8 + (value * gradient + 4) * 0.2, bounds);
  }

  return {
    value: () => value,
    end({ verdict, startedMs, endedMs, running }) {
      if (verdict === 'congested' && startedMs > decreasedMs) {
        value = within(value / 2, bounds);
        decreasedMs = endedMs;
      }
      if (verdict !== 'success') return;
      const { sinceMs, samples, sumMs, peak } = window;
      window = {
        sinceMs,
        samples: samples + 1,
        sumMs: sumMs + (endedMs - startedMs),
        peak: Math.max(peak, running),
      };
      if (endedMs - sinceMs < GRADIENT_WINDOW_MS || samples < 10) return;
      closeWindow(window.sumMs / window.samples, window.peak);
      window = { sinceMs: endedMs, samples: 0, sumMs: 0, peak: 0 };
    },
  };
}

/** The minimum of WindowedLimit. With its default of a second it grows by less than a place per second. */
const GRADIENT_WINDOW_MS = 100;

function within(value: number, { floor, ceiling }: LimitBounds): number {
  return Math.max(floor, Math.min(value, ceiling));
}
