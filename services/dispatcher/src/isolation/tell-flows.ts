import {
  TOLD_FOR_MS,
  type EndpointFlow,
  type EndpointFlows,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import { concurrencyOf, type Endpoint } from './endpoint/endpoint.ts';
import { paceOf } from './endpoint/pace.ts';

export interface TellFlowsDeps {
  endpoints: () => Iterable<Endpoint>;
  flows: Pick<EndpointFlows, 'tell'>;
  /** Where an endpoint begins. */
  startConcurrency: number;
  nowMs: () => number;
  monotonicMs: () => number;
}

interface Told {
  key: string;
  /** Monotonic. */
  atMs: number;
}

/** What lasts is told again by then, three times before Redis forgets it. */
const AGAIN_AFTER_MS = TOLD_FOR_MS / 3;
/** For one second; the rest follows. */
const MAX_AT_ONCE = 1_000;

/** Tells the gateways how endpoints are treated that are treated otherwise than a new one. */
export function createTellFlows(deps: TellFlowsDeps): { tick: () => void } {
  const told = new Map<string, Told>();
  return {
    tick() {
      const nowMs = deps.monotonicMs();
      for (const [id, { atMs }] of told) if (nowMs - atMs > TOLD_FOR_MS) told.delete(id);
      const flows = new Map<string, EndpointFlow>();
      for (const endpoint of deps.endpoints()) {
        if (flows.size >= MAX_AT_ONCE) break;
        const flow = flowOf(deps, endpoint, nowMs);
        const key = keyOf(flow, endpoint);
        if (!isNews(deps, told.get(endpoint.webhookId), { flow, key, nowMs })) continue;
        flows.set(endpoint.webhookId, flow);
        told.set(endpoint.webhookId, { key, atMs: nowMs });
      }
      if (flows.size > 0) deps.flows.tell(flows);
    },
  };
}

function flowOf(deps: TellFlowsDeps, endpoint: Endpoint, monotonicMs: number): EndpointFlow {
  const { holdUntilMs } = endpoint;
  const pace = paceOf(endpoint, monotonicMs);
  return {
    concurrency: concurrencyOf(endpoint),
    ratePerSecond: pace === null ? null : Math.round(pace * 10) / 10,
    heldUntilMs:
      holdUntilMs > monotonicMs ? Math.round(deps.nowMs() + holdUntilMs - monotonicMs) : null,
  };
}

/** With the pause as it is known here: by two clocks its end differs by a millisecond each time. */
function keyOf(
  { concurrency, ratePerSecond, heldUntilMs }: EndpointFlow,
  { holdUntilMs }: Endpoint,
): string {
  return JSON.stringify([concurrency, ratePerSecond, heldUntilMs === null ? null : holdUntilMs]);
}

function isNews(
  { startConcurrency }: TellFlowsDeps,
  before: Told | undefined,
  { flow, key, nowMs }: { flow: EndpointFlow; key: string; nowMs: number },
): boolean {
  if (before) return before.key !== key || nowMs - before.atMs >= AGAIN_AFTER_MS;
  return (
    flow.concurrency !== startConcurrency ||
    flow.ratePerSecond !== null ||
    flow.heldUntilMs !== null
  );
}
