import {
  type EndpointFlow,
  type EndpointFlows,
  FLOW_TTL_MS,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import { concurrencyOf, type Endpoint, paceOf } from './endpoint.ts';

interface FlowReporterDeps {
  endpoints: () => Iterable<Endpoint>;
  flows: Pick<EndpointFlows, 'report'>;
  /** The limit of attempts at once of a new endpoint. */
  startConcurrency: number;
  /** The highest limit of attempts at once. */
  ceiling: number;
  nowMs: () => number;
  monotonicMs: () => number;
}

interface Reported {
  key: string;
  /** Monotonic, milliseconds. */
  atMs: number;
}

/** An unchanged flow is reported again after this time, three times before Redis expires it. */
const REPEAT_AFTER_MS = FLOW_TTL_MS / 3;
/** At most this many in one tick; further ones follow in the next ticks. */
const MAX_PER_TICK = 1_000;
/** Further endpoints are not reported. */
export const MAX_REPORTED = 20_000;
/** The memory that a reported endpoint takes. */
export const REPORTED_BYTES = 256;

export interface FlowReporter {
  tick: () => void;
  /** How many endpoints it remembers. */
  size: () => number;
}

/** Reports the endpoints that are treated differently from a new one to the gateways, through Redis. */
export function createFlowReporter(deps: FlowReporterDeps): FlowReporter {
  const reported = new Map<string, Reported>();
  return {
    size: () => reported.size,
    tick() {
      const nowMs = deps.monotonicMs();
      for (const [id, { atMs }] of reported) if (nowMs - atMs > FLOW_TTL_MS) reported.delete(id);
      const flows = new Map<string, EndpointFlow>();
      for (const endpoint of deps.endpoints()) {
        if (flows.size >= MAX_PER_TICK) break;
        const flow = flowOf(deps, endpoint, nowMs);
        const key = keyOf(flow, endpoint);
        const before = reported.get(endpoint.webhookId);
        if (!before && reported.size >= MAX_REPORTED) continue;
        if (!isNew(deps, before, { flow, key, nowMs })) continue;
        flows.set(endpoint.webhookId, flow);
        reported.set(endpoint.webhookId, { key, atMs: nowMs });
      }
      if (flows.size > 0) deps.flows.report(flows);
    },
  };
}

function flowOf(deps: FlowReporterDeps, endpoint: Endpoint, monotonicMs: number): EndpointFlow {
  const { pausedUntilMs } = endpoint;
  const pace = paceOf(endpoint, monotonicMs);
  return {
    concurrency: concurrencyOf(endpoint),
    ceiling: deps.ceiling,
    ratePerSecond: pace === null ? null : Math.round(pace * 10) / 10,
    heldUntilMs:
      pausedUntilMs > monotonicMs ? Math.round(deps.nowMs() + pausedUntilMs - monotonicMs) : null,
  };
}

/**
 * Contains the monotonic end of the pause: converted to wall-clock time it differs by a millisecond each
 * time.
 */
function keyOf(
  { concurrency, ratePerSecond, heldUntilMs }: EndpointFlow,
  { pausedUntilMs }: Endpoint,
): string {
  return JSON.stringify([concurrency, ratePerSecond, heldUntilMs === null ? null : pausedUntilMs]);
}

function isNew(
  { startConcurrency }: FlowReporterDeps,
  before: Reported | undefined,
  { flow, key, nowMs }: { flow: EndpointFlow; key: string; nowMs: number },
): boolean {
  if (before) return before.key !== key || nowMs - before.atMs >= REPEAT_AFTER_MS;
  return (
    flow.concurrency !== startConcurrency ||
    flow.ratePerSecond !== null ||
    flow.heldUntilMs !== null
  );
}
