import {
  initialLimit,
  limitAfter,
  type ConcurrencyLimit,
} from '../../../services/dispatcher/src/isolation/concurrency-limit.ts';
import {
  NO_RATE,
  rateAfterRefusal,
  rateAfterSuccess,
  ratePerSecond,
  type LearnedRate,
} from '../../../services/dispatcher/src/isolation/learned-rate.ts';
import {
  countSent,
  createSentLastSecond,
  untilRateAllowsMs,
  type SentLastSecond,
} from '../../../services/dispatcher/src/isolation/endpoint.ts';
import { createEventQueue, type EventQueue } from '../deterministic/event-queue.ts';
import type { Answer, Receiver } from './receivers.ts';

export interface Load {
  receiver: Receiver;
  /** Attempts per second that become due, evenly spaced. */
  offered: (nowMs: number) => number;
  seconds: number;
  /** When our own process, which may be busy, sees what arrived at this time. */
  seenAt: (nowMs: number) => number;
  isRateLearned: boolean;
}

/** What happened in one second. */
export interface Second {
  sent: number;
  succeeded: number;
  refused: number;
  longestQueue: number;
  /** The most attempts that waited at once. */
  waiting: number;
}

export interface Run {
  seconds: Second[];
}

const BOUNDS = { floor: 1, start: 16, ceiling: 1_000 };

const VERDICTS = {
  success: 'success',
  '429': 'congested',
  '503': 'congested',
  'no connection': 'neutral',
} as const;
/** The dispatcher catches up on this much after a late timer. */
const CATCH_UP_MS = 200;

interface Simulation {
  load: Load;
  limit: ConcurrencyLimit;
  queue: EventQueue;
  run: Run;
  nowMs: number;
  waiting: number;
  running: number;
  rate: LearnedRate;
  nextPacedMs: number;
  sent: SentLastSecond;
  holdUntilMs: number;
  isWakeScheduled: boolean;
}

/**
 * Simulates one endpoint in virtual time: attempts become due, wait for a place, a hold and the rate,
 * and are made.
 */
export function simulateEndpoint(load: Load): Run {
  const simulation: Simulation = {
    load,
    limit: initialLimit(BOUNDS),
    queue: createEventQueue(),
    run: { seconds: Array.from({ length: load.seconds }, emptySecond) },
    nowMs: 0,
    waiting: 0,
    running: 0,
    rate: NO_RATE,
    nextPacedMs: 0,
    sent: createSentLastSecond(),
    holdUntilMs: 0,
    isWakeScheduled: false,
  };
  const { queue, run } = simulation;
  arrive(simulation);
  for (let event = queue.take(); event && event.atMs < load.seconds * 1_000; event = queue.take()) {
    simulation.nowMs = event.atMs;
    event.action();
  }
  return run;
}

function arrive(simulation: Simulation): void {
  const { queue, nowMs, load } = simulation;
  simulation.waiting += 1;
  const second = secondOf(simulation);
  second.waiting = Math.max(second.waiting, simulation.waiting);
  queue.add(nowMs + 1_000 / load.offered(nowMs), () => {
    arrive(simulation);
  });
  sendWaiting(simulation);
}

function sendWaiting(simulation: Simulation): void {
  const { nowMs } = simulation;
  while (simulation.waiting > 0 && simulation.running < Math.floor(simulation.limit.value)) {
    const startMs = nextStartMs(simulation);
    if (startMs > nowMs) {
      wakeAt(simulation, startMs);
      return;
    }
    send(simulation);
  }
}

/** Timers have a resolution of milliseconds, and are as late as everything else. */
function wakeAt(simulation: Simulation, startMs: number): void {
  if (simulation.isWakeScheduled) return;
  simulation.isWakeScheduled = true;
  simulation.queue.add(simulation.load.seenAt(Math.ceil(startMs)), () => {
    simulation.isWakeScheduled = false;
    sendWaiting(simulation);
  });
}

function send(simulation: Simulation): void {
  const { load, queue, nowMs } = simulation;
  advancePace(simulation);
  simulation.waiting -= 1;
  simulation.running += 1;
  const answer = load.receiver(nowMs, simulation.running);
  const second = secondOf(simulation);
  second.sent += 1;
  second.longestQueue = Math.max(second.longestQueue, answer.queued);
  queue.add(load.seenAt(nowMs + answer.afterMs), () => {
    end(simulation, nowMs, answer);
  });
}

function end(simulation: Simulation, startedMs: number, answer: Answer): void {
  const { limit, nowMs, waiting, running } = simulation;
  const ended = {
    verdict: VERDICTS[answer.status],
    startedMs,
    endedMs: nowMs,
    running,
    // As in the dispatcher, even when attempts wait for the rate or a hold.
    isLimited: waiting > 0,
  };
  simulation.limit = limitAfter(limit, ended, BOUNDS);
  simulation.running -= 1;
  learnRate(simulation, startedMs, answer);
  count(secondOf(simulation), answer);
  sendWaiting(simulation);
}

function secondOf({ run, nowMs }: Simulation): Second {
  return run.seconds[Math.floor(nowMs / 1_000)] ?? emptySecond();
}

function emptySecond(): Second {
  return { sent: 0, succeeded: 0, refused: 0, longestQueue: 0, waiting: 0 };
}

function nextStartMs({ rate, nextPacedMs, sent, holdUntilMs, nowMs }: Simulation): number {
  const perSecond = ratePerSecond(rate, nowMs);
  if (perSecond === null) return holdUntilMs;
  const rateAllowsMs = nowMs + untilRateAllowsMs(sent, perSecond, nowMs);
  return Math.max(nextPacedMs, rateAllowsMs, holdUntilMs);
}

function advancePace(simulation: Simulation): void {
  const { rate, nextPacedMs, sent, nowMs } = simulation;
  const perSecond = ratePerSecond(rate, nowMs);
  if (perSecond === null) return;
  simulation.nextPacedMs = Math.max(nextPacedMs, nowMs - CATCH_UP_MS) + 1_000 / perSecond;
  countSent(sent, nowMs);
}

function learnRate(
  simulation: Simulation,
  startedMs: number,
  { status, retryAfterMs }: Answer,
): void {
  const { load, rate, nowMs } = simulation;
  const ended = { startedMs, endedMs: nowMs };
  if (status === 'success') simulation.rate = rateAfterSuccess(rate, ended);
  if (status !== '429') return;
  if (load.isRateLearned) simulation.rate = rateAfterRefusal(rate, ended, retryAfterMs > 0);
  if (retryAfterMs === 0) return;
  simulation.holdUntilMs = Math.max(simulation.holdUntilMs, nowMs + retryAfterMs);
  // There is no catch-up after a hold: the burst would be refused.
  simulation.nextPacedMs = Math.max(simulation.nextPacedMs, simulation.holdUntilMs);
}

function count(second: Second, { status }: Answer): void {
  if (status === 'success') second.succeeded += 1;
  else second.refused += 1;
}
