import {
  NO_RATE,
  rateAfterRefusal,
  rateAfterSuccess,
  ratePerSecond,
  type LearnedRate,
} from '../../services/dispatcher/src/isolation/endpoint/learned-rate.ts';
import {
  countSent,
  createSentLately,
  untilSecondHasRoomMs,
  type SentLately,
} from '../../services/dispatcher/src/isolation/endpoint/sent-lately.ts';
import { createEventQueue, type EventQueue } from '../../test/simulation/chance/event-queue.ts';
import type { Answer, Receiver } from './receivers.ts';
import type { Rule } from './rules.ts';

export interface Load {
  receiver: Receiver;
  /** Attempts per second that come due, evenly. */
  offered: (nowMs: number) => number;
  seconds: number;
  /** When our own process sees what came at this moment: it is busy at times. */
  seenAt: (nowMs: number) => number;
  isRateLearned: boolean;
}

/** What happened in one second. */
export interface Second {
  sent: number;
  succeeded: number;
  refused: number;
  longestQueue: number;
  /** The limit at its end. */
  limit: number;
}

export interface Run {
  seconds: Second[];
  /** What the receiver took for each success, without the noise of our own process. */
  latenciesMs: number[];
}

const VERDICTS = {
  success: 'success',
  '429': 'congested',
  '503': 'congested',
  'no connection': 'neutral',
} as const;
/** The dispatcher catches up this much after a late timer. */
const CATCH_UP_MS = 200;

interface Simulation {
  load: Load;
  rule: Rule;
  queue: EventQueue;
  run: Run;
  nowMs: number;
  waiting: number;
  running: number;
  rate: LearnedRate;
  nextTurnMs: number;
  sent: SentLately;
  holdUntilMs: number;
  isWoken: boolean;
}

/** One endpoint in virtual time: attempts come due, wait for place, hold and rate, and are made. */
export function simulate(load: Load, rule: Rule): Run {
  const simulation: Simulation = {
    load,
    rule,
    queue: createEventQueue(),
    run: { seconds: Array.from({ length: load.seconds }, emptySecond), latenciesMs: [] },
    nowMs: 0,
    waiting: 0,
    running: 0,
    rate: NO_RATE,
    nextTurnMs: 0,
    sent: createSentLately(),
    holdUntilMs: 0,
    isWoken: false,
  };
  const { queue, run } = simulation;
  arrive(simulation);
  for (let event = queue.take(); event && event.atMs < load.seconds * 1_000; event = queue.take()) {
    simulation.nowMs = event.atMs;
    event.act();
  }
  return run;
}

function arrive(simulation: Simulation): void {
  const { queue, nowMs, load } = simulation;
  simulation.waiting += 1;
  queue.add(nowMs + 1_000 / load.offered(nowMs), () => {
    arrive(simulation);
  });
  sendWaiting(simulation);
}

function sendWaiting(simulation: Simulation): void {
  const { rule, nowMs } = simulation;
  while (simulation.waiting > 0 && simulation.running < Math.floor(rule.value())) {
    const turnMs = turnOf(simulation);
    if (turnMs > nowMs) {
      wakeAt(simulation, turnMs);
      return;
    }
    send(simulation);
  }
}

/** Timers have whole milliseconds, and are as late as everything else. */
function wakeAt(simulation: Simulation, turnMs: number): void {
  if (simulation.isWoken) return;
  simulation.isWoken = true;
  simulation.queue.add(simulation.load.seenAt(Math.ceil(turnMs)), () => {
    simulation.isWoken = false;
    sendWaiting(simulation);
  });
}

function send(simulation: Simulation): void {
  const { load, queue, nowMs } = simulation;
  takeTurn(simulation);
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
  const { rule, run, nowMs, waiting, running } = simulation;
  rule.end({
    verdict: VERDICTS[answer.status],
    startedMs,
    endedMs: nowMs,
    running,
    // As in the dispatcher: also when it is the rate or a hold that they wait for.
    isLimited: waiting > 0,
  });
  simulation.running -= 1;
  learnRate(simulation, startedMs, answer);
  count(secondOf(simulation), answer, rule.value());
  if (answer.status === 'success') run.latenciesMs.push(answer.afterMs);
  sendWaiting(simulation);
}

function secondOf({ run, nowMs }: Simulation): Second {
  return run.seconds[Math.floor(nowMs / 1_000)] ?? emptySecond();
}

function emptySecond(): Second {
  return { sent: 0, succeeded: 0, refused: 0, longestQueue: 0, limit: 0 };
}

function turnOf({ rate, nextTurnMs, sent, holdUntilMs, nowMs }: Simulation): number {
  const perSecond = ratePerSecond(rate, nowMs);
  if (perSecond === null) return holdUntilMs;
  const roomMs = nowMs + untilSecondHasRoomMs(sent, perSecond, nowMs);
  return Math.max(nextTurnMs, roomMs, holdUntilMs);
}

function takeTurn(simulation: Simulation): void {
  const { rate, nextTurnMs, sent, nowMs } = simulation;
  const perSecond = ratePerSecond(rate, nowMs);
  if (perSecond === null) return;
  simulation.nextTurnMs = Math.max(nextTurnMs, nowMs - CATCH_UP_MS) + 1_000 / perSecond;
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
  if (load.isRateLearned) simulation.rate = rateAfterRefusal(rate, ended);
  if (retryAfterMs === 0) return;
  simulation.holdUntilMs = Math.max(simulation.holdUntilMs, nowMs + retryAfterMs);
  // Nothing is caught up after a hold: the burst would be refused.
  simulation.nextTurnMs = Math.max(simulation.nextTurnMs, simulation.holdUntilMs);
}

function count(second: Second, { status }: Answer, limit: number): void {
  if (status === 'success') second.succeeded += 1;
  else second.refused += 1;
  second.limit = limit;
}
