import {
  type EndpointFlow,
  type EndpointFlows,
  FLOW_TTL_MS,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { DEFERRAL_REASONS, type DeferralReason } from '../defer.ts';
import type { Circuits } from './circuits.ts';
import { concurrencyOf, type Endpoint } from './endpoint.ts';
import { paceOf } from './learned-rate.ts';
import type { Queues } from './queues.ts';

/** Counts decisions of the gate. Attempts that are made at once or wait in memory are not counted. */
export interface IsolationMetrics {
  countDeferral: (because: DeferralReason) => void;
  countSlowLane: () => void;
}

export function createIsolationMetrics(registry: Registry): IsolationMetrics {
  const registers = [registry];
  const deferrals = new Counter({
    name: 'posthorn_deferrals_total',
    help: 'Attempts that were deferred to a delay topic, by reason. A deferral uses up no attempt.',
    labelNames: ['because'],
    registers,
  });
  startAtZero(deferrals, 'because', DEFERRAL_REASONS);
  const circuitDeferrals = new Counter({
    name: 'posthorn_circuit_breaker_deferrals_total',
    help: 'Attempts that were deferred because their circuit was open.',
    registers,
  });
  const spills = new Counter({
    name: 'posthorn_slow_lane_spills_total',
    help: 'Attempts moved to the slow lane because their endpoint takes a second or longer.',
    registers,
  });
  return {
    countDeferral(because) {
      deferrals.inc({ because });
      if (because === 'circuit') circuitDeferrals.inc();
    },
    countSlowLane: () => {
      spills.inc();
    },
  };
}

interface WatchedIsolation {
  queues: Pick<Queues, 'running' | 'waiting' | 'endpoints'>;
  circuits: Pick<Circuits, 'count'>;
  /** Attempts that may be under way at once. */
  limit: number;
}

/** Gauges of the present, read at each scrape. */
export function watchIsolation(
  registry: Registry,
  { queues, circuits, limit }: WatchedIsolation,
): void {
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  };
  gauge('posthorn_deliveries_in_flight', 'Attempts under way.', () => queues.running());
  gauge(
    'posthorn_deliveries_waiting',
    'Attempts that wait in memory for their endpoint or for a free place.',
    () => queues.waiting(),
  );
  gauge(
    'posthorn_delivery_concurrency_limit',
    'Attempts that may be under way at once.',
    () => limit,
  );
  watchCircuits(registry, circuits);
  watchConcurrency(registry, queues);
}

function watchCircuits(registry: Registry, circuits: WatchedIsolation['circuits']): void {
  new Gauge({
    name: 'posthorn_circuit_breakers',
    help: 'Circuits of endpoints that failed recently, by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(circuits.count())) this.set({ state }, count);
    },
  });
}

/** A histogram of the present: it is reset and filled at each scrape. */
function watchConcurrency(registry: Registry, queues: WatchedIsolation['queues']): void {
  new Histogram({
    name: 'posthorn_endpoint_concurrency_limit',
    help: 'Attempts that each endpoint with recent traffic may have at once.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
    registers: [registry],
    collect() {
      this.reset();
      for (const endpoint of queues.endpoints()) this.observe(concurrencyOf(endpoint));
    },
  });
}

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
/** At most this many in one tick; the rest follow in the next ones. */
const MAX_PER_TICK = 1_000;
/** Of more endpoints at once, the rest are not reported. */
export const MAX_REPORTED = 20_000;
/** What is kept about one that was reported. */
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
  const { holdUntilMs } = endpoint;
  const pace = paceOf(endpoint, monotonicMs);
  return {
    concurrency: concurrencyOf(endpoint),
    ceiling: deps.ceiling,
    ratePerSecond: pace === null ? null : Math.round(pace * 10) / 10,
    heldUntilMs:
      holdUntilMs > monotonicMs ? Math.round(deps.nowMs() + holdUntilMs - monotonicMs) : null,
  };
}

/**
 * Contains the monotonic end of the hold: converted to wall-clock time it differs by a millisecond each
 * time.
 */
function keyOf(
  { concurrency, ratePerSecond, heldUntilMs }: EndpointFlow,
  { holdUntilMs }: Endpoint,
): string {
  return JSON.stringify([concurrency, ratePerSecond, heldUntilMs === null ? null : holdUntilMs]);
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
