import type { Attempt } from '@posthorn/domain/delivery.ts';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { World } from '../run/world.ts';

/** One request that an endpoint got, whatever became of its answer. */
export interface MadeRequest {
  deliveryId: string;
  attemptId: string;
  number: number;
  trigger: Attempt['trigger'];
  outcome: Outcome;
  /** By the wall clock of the process that made it. */
  startedAtMs: number;
  durationMs: number;
  /** By the virtual clock. */
  beganMs: number;
}

export type Send = (due: DueAttempt) => Promise<Attempt>;

/** An attempt's time limit, when its endpoint hangs. */
const TIMEOUT_MS = 15_000;
const ANSWER_MS = 300;

/** Endpoints that answer as the seed says; each request is noted before its answer can be lost. */
export function createSend(
  world: World,
  process: SimulatedProcess,
  onRequest: (made: MadeRequest) => void,
): Send {
  return (due) =>
    new Promise((resolve) => {
      world.strike(process);
      if (!process.isAlive()) return;
      const made = answerTo(world, process, due);
      const { outcome, startedAtMs, durationMs } = made;
      world.tell(process.name, `${due.deliveryId.slice(-6)} attempt ${made.number}: ${outcome}`);
      onRequest(made);
      world.time.after(durationMs, () => {
        world.strike(process);
        if (!process.isAlive()) return;
        const { attemptId: id, attemptNumber: number, trigger } = due;
        const nothing = { statusCode: null, response: null, responseHeaders: [] };
        resolve({ id, number, trigger, outcome, startedAtMs, durationMs, ...nothing });
      });
    });
}

function answerTo(world: World, process: SimulatedProcess, due: DueAttempt): MadeRequest {
  const { random, plan, time } = world;
  const { webhookId, deliveryId, attemptId, attemptNumber: number, trigger } = due;
  const isSuccess = random.isHit(plan.successRates[Number(webhookId.slice(-2))] ?? 0);
  const outcome = isSuccess ? 'success' : random.pick<Outcome>(['http_5xx', 'http_429', 'timeout']);
  const durationMs = outcome === 'timeout' ? TIMEOUT_MS : random.between(1, ANSWER_MS);
  const times = { startedAtMs: process.nowMs(), durationMs, beganMs: time.nowMs() };
  return { deliveryId, attemptId, number, trigger, outcome, ...times };
}
