import type { Attempt, Outcome } from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import type { SimulatedProcess } from '../infrastructure/simulated-process.ts';
import type { World } from '../world/world.ts';

/** A request that an endpoint has received, even if its response was lost. */
export interface EndpointRequest {
  deliveryId: string;
  attemptId: string;
  number: number;
  trigger: Attempt['trigger'];
  outcome: Outcome;
  /** By the wall clock of the process that sent it. */
  startedAtMs: number;
  durationMs: number;
  /** By the virtual clock. */
  virtualStartMs: number;
}

export type Send = (due: DueAttempt) => Promise<Attempt>;

/** The time limit of an attempt, for an endpoint that hangs. */
const TIMEOUT_MS = 15_000;
const MAX_RESPONSE_MS = 300;

/** Returns a `send` whose endpoints respond at random. A request is reported before its response can be lost. */
export function createSend(
  world: World,
  process: SimulatedProcess,
  onRequest: (request: EndpointRequest, due: DueAttempt) => void,
): Send {
  return (due) =>
    new Promise((resolve) => {
      world.injectFault(process);
      if (!process.isAlive()) return;
      const request = randomResponse(world, process, due);
      const { outcome, startedAtMs, durationMs } = request;
      world.trace(
        process.name,
        `${due.deliveryId.slice(-6)} attempt ${request.number}: ${outcome}`,
      );
      onRequest(request, due);
      world.time.after(durationMs, () => {
        world.injectFault(process);
        if (!process.isAlive()) return;
        const { attemptId: id, attemptNumber: number, trigger } = due;
        const noResponse = { statusCode: null, response: null, responseHeaders: [] };
        resolve({ id, number, trigger, outcome, startedAtMs, durationMs, ...noResponse });
      });
    });
}

function randomResponse(world: World, process: SimulatedProcess, due: DueAttempt): EndpointRequest {
  const { random, plan, time } = world;
  const { webhookId, deliveryId, attemptId, attemptNumber: number, trigger } = due;
  const isSuccess = random.bool(plan.successRates[Number(webhookId.slice(-2))] ?? 0);
  const outcome = isSuccess ? 'success' : random.pick<Outcome>(['http_5xx', 'http_429', 'timeout']);
  const durationMs = outcome === 'timeout' ? TIMEOUT_MS : random.between(1, MAX_RESPONSE_MS);
  const times = { startedAtMs: process.nowMs(), durationMs, virtualStartMs: time.nowMs() };
  return { deliveryId, attemptId, number, trigger, outcome, ...times };
}
