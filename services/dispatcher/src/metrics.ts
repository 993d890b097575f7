import { type Attempt, endedAtMs, OUTCOMES, TRIGGERS } from '@posthorn/domain/delivery/delivery.ts';
import { EGRESS_REFUSALS } from '@posthorn/domain/egress.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Circuits } from './isolation/circuits.ts';
import { concurrencyOf } from './isolation/endpoint.ts';
import { DEFERRAL_REASONS, type DeferralReason } from './isolation/gate.ts';
import type { Queues } from './isolation/queues.ts';
import { TOKEN_RESULTS } from './sending/access-tokens.ts';
import { TUNNEL_RESULTS } from './sending/connect/egress-proxy.ts';
import { HANDSHAKES } from './sending/connect/tls-sessions.ts';
import type { SenderMetrics, ShownConnections } from './sending/sender.ts';

export interface DispatcherMetrics {
  sender: SenderMetrics;
  /** Counts one attempt, its duration and its lag; a success also as the end of its delivery. */
  observe: (due: DueAttempt, attempt: Attempt) => void;
  countCancelled: () => void;
  /** Counts one attempt whose delivery waits until a hold or a suspension ends. */
  countHeld: () => void;
  /** Attempts that are made at once or wait in memory are not counted. */
  countDeferral: (because: DeferralReason) => void;
  countSlowLane: () => void;
  sequences: SequenceMetrics;
}

/** Where a delivery waits for earlier ones with its ordering key. */
const FOLLOWERS = ['memory', 'stored'] as const;

export interface SequenceMetrics {
  onFollower: (where: (typeof FOLLOWERS)[number]) => void;
  /** The next delivery of a key has begun so long after the success of the one in front, in milliseconds. */
  onStep: (ms: number) => void;
}

export function createDispatcherMetrics(registry: Registry): DispatcherMetrics {
  const finished = counterOf(registry, 'result', ['delivered', 'cancelled'], {
    name: 'posthorn_deliveries_finished_total',
    help: 'Deliveries that this process brought to a final state.',
  });
  const held = new Counter({
    name: 'posthorn_attempts_held_total',
    help: 'Attempts that came due while their webhook or app was on hold or their company suspended, and wait for the end of that.',
    registers: [registry],
  });
  return {
    sender: createSenderMetrics(registry),
    observe: createObserve(registry, () => {
      finished('delivered');
    }),
    countCancelled() {
      finished('cancelled');
    },
    countHeld() {
      held.inc();
    },
    ...createGateMetrics(registry),
    sequences: createSequenceMetrics(registry),
  };
}

function createSequenceMetrics(registry: Registry): SequenceMetrics {
  const onFollower = counterOf(registry, 'where', FOLLOWERS, {
    name: 'posthorn_sequence_followers_total',
    help: 'Deliveries that began to wait for earlier ones with their ordering key: in memory, or stored.',
  });
  const step = new Histogram({
    name: 'posthorn_sequence_step_seconds',
    help: 'Time from the success of a delivery to the beginning of the next one with its ordering key, which waited in memory.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15, 60],
    registers: [registry],
  });
  return {
    onFollower,
    onStep(ms) {
      step.observe(ms / 1_000);
    },
  };
}

/** Creates a counter with one label, which shows all its values from the start. Returns a function that counts one. */
function counterOf<Value extends string>(
  registry: Registry,
  label: string,
  values: readonly Value[],
  { name, help }: { name: string; help: string },
): (value: Value) => void {
  const counter = new Counter({ name, help, labelNames: [label], registers: [registry] });
  startAtZero(counter, label, values);
  return (value) => {
    counter.inc({ [label]: value });
  };
}

function createObserve(registry: Registry, onDelivered: () => void): DispatcherMetrics['observe'] {
  const attempts = new Counter({
    name: 'posthorn_delivery_attempts_total',
    help: 'Attempts made, by outcome and trigger.',
    labelNames: ['outcome', 'trigger'],
    registers: [registry],
  });
  for (const outcome of OUTCOMES) {
    for (const trigger of TRIGGERS) attempts.inc({ outcome, trigger }, 0);
  }
  const { duration, lag, completion } = createHistograms([registry]);
  return (due, attempt) => {
    const { outcome, trigger, durationMs, startedAtMs } = attempt;
    const isDelivered = outcome === 'success';
    attempts.inc({ outcome, trigger });
    duration.observe({ result: isDelivered ? 'success' : 'failure' }, durationMs / 1_000);
    lag.observe({ stage: trigger }, Math.max(0, startedAtMs - due.dueAtMs) / 1_000);
    if (!isDelivered) return;
    onDelivered();
    const wholeMs = Math.max(0, endedAtMs(attempt) - due.createdAtMs);
    completion.observe({ result: 'delivered' }, wholeMs / 1_000);
  };
}

function createHistograms(registers: Registry[]) {
  const duration = new Histogram({
    name: 'posthorn_delivery_attempt_duration_seconds',
    help: 'Duration of the whole exchange with the endpoint, from the look-up of its host to the end of its response.',
    labelNames: ['result'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30],
    registers,
  });
  const lag = new Histogram({
    name: 'posthorn_delivery_lag_seconds',
    help: 'Time from when an attempt was due to when it began.',
    labelNames: ['stage'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3_600],
    registers,
  });
  const completion = new Histogram({
    name: 'posthorn_delivery_completion_seconds',
    help: 'Time from the acceptance of a message to the end of its delivery.',
    labelNames: ['result'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 1, 10, 60, 600, 3_600, 21_600, 86_400, 259_200],
    registers,
  });
  return { duration, lag, completion };
}

function createGateMetrics(
  registry: Registry,
): Pick<DispatcherMetrics, 'countDeferral' | 'countSlowLane'> {
  const registers = [registry];
  const countReason = counterOf(registry, 'because', DEFERRAL_REASONS, {
    name: 'posthorn_deferrals_total',
    help: 'Attempts that were deferred to a delay topic, by reason. A deferral uses up no attempt.',
  });
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
      countReason(because);
      if (because === 'circuit') circuitDeferrals.inc();
    },
    countSlowLane() {
      spills.inc();
    },
  };
}

function createSenderMetrics(registry: Registry): SenderMetrics {
  const countConnection = counterOf(registry, 'reused', ['true', 'false'], {
    name: 'posthorn_outbound_connections_total',
    help: 'Requests sent to endpoints, by whether they reused an open connection.',
  });
  const evicted = new Counter({
    name: 'posthorn_outbound_connections_evicted_total',
    help: 'Idle connections to endpoints that were closed because open connections reached their share of MEMORY_MIB.',
    registers: [registry],
  });
  return {
    onRefused: counterOf(registry, 'reason', EGRESS_REFUSALS, {
      name: 'posthorn_egress_blocked_total',
      help: 'Connections refused by the egress rules, by reason.',
    }),
    onSent(isReused) {
      countConnection(isReused ? 'true' : 'false');
    },
    onHandshake: counterOf(registry, 'kind', HANDSHAKES, {
      name: 'posthorn_tls_handshakes_total',
      help: 'TLS handshakes with endpoints and token servers, full or resumed with the session of an earlier connection.',
    }),
    onEvicted() {
      evicted.inc();
    },
    onTunnel: counterOf(registry, 'result', TUNNEL_RESULTS, {
      name: 'posthorn_proxy_tunnels_total',
      help: 'Connections asked of the egress proxy, by result; each fault deserves an alert, since deliveries wait for the proxy.',
    }),
    onTokenRequest: counterOf(registry, 'result', TOKEN_RESULTS, {
      name: 'posthorn_token_requests_total',
      help: 'Requests for OAuth 2.0 access tokens, by result.',
    }),
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
  const registers = [registry];
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  gauge('posthorn_deliveries_in_flight', 'Attempts under way.', () => queues.running());
  gauge(
    'posthorn_deliveries_waiting',
    'Attempts that wait in memory for their endpoint or for a free slot.',
    () => queues.waiting(),
  );
  gauge(
    'posthorn_delivery_concurrency_limit',
    'Attempts that may be under way at once.',
    () => limit,
  );
  watchCircuits(registers, circuits);
  watchConcurrency(registers, queues);
}

function watchCircuits(registers: Registry[], circuits: WatchedIsolation['circuits']): void {
  new Gauge({
    name: 'posthorn_circuit_breakers',
    help: 'Circuits of endpoints that failed recently, by state.',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(circuits.count())) this.set({ state }, count);
    },
  });
}

/** A histogram of the present: it is reset and filled at each scrape. */
function watchConcurrency(registers: Registry[], queues: WatchedIsolation['queues']): void {
  new Histogram({
    name: 'posthorn_endpoint_concurrency_limit',
    help: 'Attempts that each endpoint with recent traffic may have at once.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
    registers,
    collect() {
      this.reset();
      for (const endpoint of queues.endpoints().values()) this.observe(concurrencyOf(endpoint));
    },
  });
}

/** Shows the connections to endpoints and token servers, and the look-ups of their hosts, at each scrape. */
export function watchConnections(
  registry: Registry,
  { connections, lookups }: ShownConnections,
): void {
  new Gauge({
    name: 'posthorn_outbound_sockets',
    help: 'Open connections to endpoints and token servers: busy with a request, or idle.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { open, idle } = connections();
      this.set({ state: 'busy' }, open - idle);
      this.set({ state: 'idle' }, idle);
    },
  });
  new Counter({
    name: 'posthorn_host_lookups_total',
    help: 'Look-ups of the addresses of hosts: hit from memory, miss at the name servers.',
    labelNames: ['result'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [result, count] of Object.entries(lookups())) this.inc({ result }, count);
    },
  });
}
