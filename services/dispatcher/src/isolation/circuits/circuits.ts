import type { Trigger } from '@posthorn/domain/delivery.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { EventEmitter } from 'node:events';
import { BUCKETS, createCircuit, WINDOW_MS, type Circuit, type CircuitState } from './circuit.ts';
import { hasFailedBy, obstacleOf, type Obstacle, type Shown } from './when-circuit-opens.ts';

/** Where an attempt would go; a changed address is another endpoint and begins with a closed circuit. */
export interface Endpoint {
  id: string;
  url: string;
}

/** What came of the attempt must be told once; null when it was not made after all. */
export type Permit = (shown: Shown | null) => Promise<void>;

export interface Circuits {
  /**
   * What stands against an attempt now; null when nothing does. Costs one look-up: an endpoint that
   * never failed has no circuit. An attempt that a person asked for may be the probe before the
   * circuit's own time.
   */
  obstacle: (endpoint: Endpoint, trigger: Trigger) => Obstacle | null;
  /** Call when `obstacle` has just answered null. Begins a probe unless the circuit is closed. */
  permit: (endpoint: Endpoint) => Permit;
  /** Reads what other owners left behind; without Redis nothing is known of them. */
  takeOver: () => Promise<void>;
  /** Circuits by state, for the metrics. */
  count: () => Record<CircuitState, number>;
  stop: () => void;
}

export interface BreakerDeps {
  shared: Pick<OpenCircuits, 'readAll' | 'opened' | 'closed'>;
  logger: Pick<Logger, 'info' | 'warn'>;
  nowMs: () => number;
  /** How long an open circuit waits before its probe. */
  resetMs: number;
  /** Beyond this many the one that failed longest ago goes. */
  maxCircuits: number;
}

/** Of the successes before the first failure: 20 broken connections among 1,000 must not open it. */
const MAX_SEEDED = 200;
/** Longer than the longest wait of a record that was deferred. */
const FORGOTTEN_AFTER_MS = 12 * 3_600_000;
/** What one circuit takes, mostly opossum's. */
export const CIRCUIT_BYTES = 13_000;

interface State extends BreakerDeps {
  circuits: Map<string, Circuit>;
  /** Open circuits of former owners that were not needed here yet: id → time of the probe. */
  inherited: Map<string, number>;
  rotation: EventEmitter;
}

/** Circuit breakers per endpoint, made at its first failure, dropped after two minutes without one. */
export function createCircuits(deps: BreakerDeps): Circuits {
  const rotation = new EventEmitter().setMaxListeners(0);
  const state: State = { ...deps, circuits: new Map(), inherited: new Map(), rotation };
  const timer = setInterval(() => {
    rotation.emit('rotate');
    dropIdle(state);
  }, WINDOW_MS / BUCKETS);
  return {
    obstacle: (endpoint, trigger) => obstacleOf(find(state, endpoint), trigger, deps),
    permit: (endpoint) => permit(state, endpoint),
    takeOver: () => takeOver(state),
    count: () => count(state),
    stop() {
      clearInterval(timer);
      for (const id of state.circuits.keys()) drop(state, id);
    },
  };
}

function permit(state: State, endpoint: Endpoint): Permit {
  const circuit = find(state, endpoint);
  const isProbe = circuit !== undefined && circuit.state() !== 'closed';
  const endProbe = isProbe ? circuit.beginProbe() : null;
  const openings = circuit?.openings() ?? 0;
  return async (shown) => {
    const present = find(state, endpoint);
    const hasFailed = shown && hasFailedBy(shown);
    if (isProbe) {
      if (hasFailed !== null && present === circuit) judge(state, endpoint, circuit, hasFailed);
      endProbe?.();
    } else if (shown && hasFailed !== null && (present?.openings() ?? 0) === openings) {
      if (!present && !hasFailed) return;
      await countIn(state, endpoint, present ?? createAfter(state, endpoint, shown), hasFailed);
    }
  };
}

/** A circuit that closes is dropped: what failed before it opened must not open it at the next slip. */
function judge(state: State, { id }: Endpoint, circuit: Circuit, hasFailed: boolean): void {
  circuit.judge(hasFailed);
  if (hasFailed) moveToEnd(state, id, circuit);
  else drop(state, id);
}

function moveToEnd({ circuits }: State, id: string, circuit: Circuit): void {
  circuits.delete(id);
  circuits.set(id, circuit);
}

async function countIn(
  state: State,
  endpoint: Endpoint,
  circuit: Circuit,
  hasFailed: boolean,
): Promise<void> {
  if (circuit.state() !== 'closed') return;
  if (hasFailed) moveToEnd(state, endpoint.id, circuit);
  await circuit.count(hasFailed);
}

function createAfter(state: State, endpoint: Endpoint, { succeededLately }: Shown): Circuit {
  const circuit = create(state, endpoint);
  for (let n = 0; n < Math.min(succeededLately, MAX_SEEDED); n += 1) void circuit.count(false);
  return circuit;
}

function find(state: State, endpoint: Endpoint): Circuit | undefined {
  const { id, url } = endpoint;
  const circuit = state.circuits.get(id);
  if (circuit?.url === url) return circuit;
  if (circuit) {
    drop(state, id);
    state.shared.closed(id);
  }
  const probeAtMs = state.inherited.get(id);
  if (probeAtMs === undefined) return undefined;
  state.inherited.delete(id);
  return create(state, endpoint, probeAtMs);
}

function create(state: State, { id, url }: Endpoint, probeAtMs?: number): Circuit {
  const { circuits, shared, logger, nowMs, resetMs, rotation } = state;
  makeRoom(state);
  const circuit = createCircuit({
    url,
    resetMs,
    nowMs,
    rotation,
    ...(probeAtMs !== undefined && { probeAtMs }),
    onOpen: (untilMs) => {
      shared.opened(id, untilMs);
      logger.info({ webhookId: id, resetMs }, 'circuit open');
    },
    onClose: () => {
      shared.closed(id);
      logger.info({ webhookId: id }, 'circuit closed');
    },
  });
  circuits.set(id, circuit);
  return circuit;
}

/** The map is kept in the order of the newest failures. */
function makeRoom(state: State): void {
  const { circuits, maxCircuits } = state;
  const [oldest] = circuits.keys();
  if (oldest !== undefined && circuits.size >= maxCircuits) drop(state, oldest);
}

/** Closed and without a failure for a whole window, or open and asked for by nobody: it costs nothing any more. */
function dropIdle(state: State): void {
  const nowMs = state.nowMs();
  for (const [id, circuit] of state.circuits) {
    const keptMs = circuit.state() === 'closed' ? WINDOW_MS : FORGOTTEN_AFTER_MS;
    if (circuit.lastFailureMs() < nowMs - keptMs) drop(state, id);
  }
}

function drop({ circuits }: State, id: string): void {
  circuits.get(id)?.shutDown();
  circuits.delete(id);
}

/** What is open here stays: it is as new as what is shared, or was never told for want of Redis. */
async function takeOver(state: State): Promise<void> {
  try {
    const shared = await state.shared.readAll();
    for (const [id, circuit] of state.circuits) {
      if (circuit.state() === 'closed') drop(state, id);
      else {
        shared.delete(id);
        state.shared.opened(id, circuit.probeAtMs());
      }
    }
    state.inherited = shared;
  } catch (error) {
    state.logger.warn({ error: messageOf(error) }, 'open circuits of others are not known');
  }
}

function count({ circuits }: State): Record<CircuitState, number> {
  const counted = { closed: 0, open: 0, half_open: 0 };
  for (const circuit of circuits.values()) counted[circuit.state()] += 1;
  return counted;
}
