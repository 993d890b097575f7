import type { Response } from 'express';
import { type ApiError, unavailable } from '../api-error.ts';

/** Bounds how long a request waits for what it needs: MongoDB, Redis, its turn. */
export interface RequestDeadlines {
  /**
   * Returns what the step resolves to. Throws ApiError 503 when the steps of this request have taken too
   * long together. The step itself is not stopped: a message that it stores after the refusal is still delivered.
   */
  within: <T>(response: Response, step: Promise<T>) => Promise<T>;
  /** Returns a signal that is aborted a second before the request is refused: for a step that can end with a part. */
  signalOf: (response: Response) => AbortSignal;
  /** Refuses the requests whose time is over. */
  tick: () => void;
}

/** The time for all steps of a request together: less than 10 s with the wait for the next tick and all other work. */
const ANSWER_WITHIN_MS = 8_000;
/** The pause between two calls of `tick`. */
export const DEADLINES_EVERY_MS = 250;
/** How long MongoDB may work on a read for a request: it works for none that has its response. */
export const READ_WITHIN_MS = 7_000;

/** How much earlier the signal comes: time for the response, and for the next tick. */
const SIGNAL_BEFORE_MS = 1_000;

interface RunningStep {
  response: Response;
  endsAtMs: number;
  refuse: (error: ApiError) => void;
}

/**
 * One timer checks all requests: with thousands of requests a second, a timer for each would cost more. The time in which
 * a body arrives is not counted.
 */
export function createRequestDeadlines(monotonicMs: () => number): RequestDeadlines {
  const running = new Set<RunningStep>();
  const signals = new WeakMap<Response, AbortController>();
  return {
    signalOf(response) {
      const controller = signals.get(response) ?? new AbortController();
      signals.set(response, controller);
      return controller.signal;
    },
    within(response, step) {
      const startedMs = monotonicMs();
      const { stepsMs = 0 } = response.locals as { stepsMs?: number };
      return new Promise((resolve, reject) => {
        const own = { response, endsAtMs: startedMs + ANSWER_WITHIN_MS - stepsMs, refuse: reject };
        running.add(own);
        step
          .finally(() => {
            running.delete(own);
            response.locals.stepsMs = stepsMs + monotonicMs() - startedMs;
          })
          .then(resolve, reject);
      });
    },
    tick() {
      const nowMs = monotonicMs();
      for (const step of running) {
        if (nowMs >= step.endsAtMs - SIGNAL_BEFORE_MS) signals.get(step.response)?.abort();
        if (nowMs < step.endsAtMs) continue;
        running.delete(step);
        step.refuse(unavailable('deadline_over'));
      }
    },
  };
}
