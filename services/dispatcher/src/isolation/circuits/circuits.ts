import { EventEmitter } from 'node:events';
import type { Trigger } from '@posthorn/domain/message/delivery.ts';
import { startTicker } from '@posthorn/platform/async/ticker.ts';
import type { ReportIncident } from '@posthorn/platform/operator-events/report-incidents.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { MAX_INHERITED } from '../endpoint/inherited-holds.ts';
import { createCircuit, type Circuit, type CircuitState } from './circuit.ts';
import { tellCircuitChanges, tellUrlChanged } from './tell-circuit-changes.ts';
import { blockOf, type CircuitBlock } from './when-circuit-blocks.ts';
import {
  countsAsFailure,
  OPENS_WHEN,
  seededSuccesses,
  type CircuitReport,
} from './when-circuit-opens.ts';

/** Where an attempt goes. A changed URL is another endpoint, and starts with a closed circuit. */
export interface CircuitEndpoint {
  id: string;
  companyId: string;
  url: string;
}

/** To be called once, with what the attempt showed; null when it was not made after all. */
export type ReportToCircuit = (report: CircuitReport | null) => Promise<void>;

export interface Circuits {
  /**
   * To be called for each attempt that arrives, before `blockOf`: drops the circuit of a former URL, and
   * creates that of a former owner.
   */
  refresh: (endpoint: CircuitEndpoint) => void;
  /**
   * Returns what blocks an attempt now; null when it may be made. Costs one map look-up: an endpoint
   * that never failed has no circuit. An attempt that a person asked for may be the probe before the
   * circuit's own time.
   */
  blockOf: (endpoint: CircuitEndpoint, trigger: Trigger) => CircuitBlock | null;
  /** To be called right after `blockOf` returned null. Begins a probe unless the circuit is closed. */
  beginAttempt: (endpoint: CircuitEndpoint) => ReportToCircuit;
  /** Reads the open circuits of former owners. Without Redis nothing is known of them. */
  takeOver: () => Promise<void>;
  /** Circuits by state, for the metrics. */
  count: () => Record<CircuitState, number>;
  /** How many open circuits of former owners are kept that were not needed yet. */
  inherited: () => number;
  stop: () => void;
}

export interface CircuitsDeps {
  shared: Pick<OpenCircuits, 'takeOverCircuits' | 'opened' | 'closed'>;
  logger: Pick<Logger, 'info' | 'warn'>;
  /** Tells the operator when a circuit opens, and when it closes. */
  report: ReportIncident;
  nowMs: () => number;
  /** How long an open circuit waits before its probe. */
  resetMs: number;
  /** Beyond this many, the one that failed longest ago is dropped. */
  maxCircuits: number;
}

/** Longer than the longest wait of a deferred record. */
const FORGOTTEN_AFTER_MS = 12 * 3_600_000;
/** What one circuit takes in memory, mostly opossum's. */
export const CIRCUIT_BYTES = 13_000;

interface State extends CircuitsDeps {
  /** In the order of their last failures. */
  circuits: Map<string, Circuit>;
  /** Open circuits of former owners that were not needed here yet: id → time of the probe. */
  inherited: Map<string, number>;
  rotation: EventEmitter;
}

/** Circuits by endpoint: created at the first failure, dropped after two minutes without one. */
export function createCircuits(deps: CircuitsDeps): Circuits {
  const rotation = new EventEmitter().setMaxListeners(0);
  const state: State = { ...deps, circuits: new Map(), inherited: new Map(), rotation };
  const ticker = startTicker(OPENS_WHEN.windowMs / OPENS_WHEN.buckets, () => {
    rotation.emit('rotate');
    dropIdle(state);
  });
  return {
    refresh: (endpoint) => void refresh(state, endpoint),
    blockOf: (endpoint, trigger) => blockOf(find(state, endpoint), trigger, deps),
    beginAttempt: (endpoint) => beginAttempt(state, endpoint),
    takeOver: () => takeOver(state),
    count: () => count(state),
    inherited: () => state.inherited.size,
    stop() {
      ticker.stop();
      for (const id of state.circuits.keys()) drop(state, id);
    },
  };
}

function find({ circuits }: State, { id, url }: CircuitEndpoint): Circuit | undefined {
  const circuit = circuits.get(id);
  return circuit?.url === url ? circuit : undefined;
}

function isOfAnotherUrl({ circuits }: State, { id, url }: CircuitEndpoint): boolean {
  return (circuits.get(id)?.url ?? url) !== url;
}

function beginAttempt(state: State, endpoint: CircuitEndpoint): ReportToCircuit {
  const circuit = refresh(state, endpoint);
  const isProbe = circuit !== undefined && circuit.state() !== 'closed';
  const endProbe = isProbe ? circuit.beginProbe() : null;
  const openings = circuit?.openings() ?? 0;
  return async (report) => {
    // The URL was changed meanwhile. An attempt to the former one says nothing about it.
    if (isOfAnotherUrl(state, endpoint)) {
      endProbe?.();
      return;
    }
    const present = refresh(state, endpoint);
    const hasFailed = report && countsAsFailure(report);
    if (isProbe) {
      if (hasFailed !== null && present === circuit)
        applyProbe(state, endpoint, circuit, hasFailed);
      endProbe?.();
    } else if (report && hasFailed !== null && (present?.openings() ?? 0) === openings) {
      if (!present && !hasFailed) return;
      const counting = present ?? createSeeded(state, endpoint, report);
      await countAttempt(state, endpoint, counting, hasFailed);
    }
  };
}

/** A circuit that closes is dropped: failures from before it opened must not open it at the next one. */
function applyProbe(
  state: State,
  { id }: CircuitEndpoint,
  circuit: Circuit,
  hasFailed: boolean,
): void {
  circuit.endProbe(hasFailed);
  if (hasFailed) moveToEnd(state, id, circuit);
  else drop(state, id);
}

function moveToEnd({ circuits }: State, id: string, circuit: Circuit): void {
  circuits.delete(id);
  circuits.set(id, circuit);
}

async function countAttempt(
  state: State,
  endpoint: CircuitEndpoint,
  circuit: Circuit,
  hasFailed: boolean,
): Promise<void> {
  if (circuit.state() !== 'closed') return;
  if (hasFailed) moveToEnd(state, endpoint.id, circuit);
  await circuit.countAttempt(hasFailed);
}

function createSeeded(state: State, endpoint: CircuitEndpoint, report: CircuitReport): Circuit {
  const circuit = create(state, endpoint);
  const successes = seededSuccesses(report);
  for (let n = 0; n < successes; n += 1) void circuit.countAttempt(false);
  return circuit;
}

/**
 * Drops the circuit of a former URL, and creates that of a former owner when it is first needed. Returns
 * the circuit of the endpoint, if it has one then.
 */
function refresh(state: State, endpoint: CircuitEndpoint): Circuit | undefined {
  const { id, url } = endpoint;
  const circuit = state.circuits.get(id);
  if (circuit?.url === url) return circuit;
  if (circuit) {
    const wasOpen = circuit.state() !== 'closed';
    drop(state, id);
    tellUrlChanged(state, endpoint, wasOpen);
  }
  const probeAtMs = state.inherited.get(id);
  if (probeAtMs === undefined) return undefined;
  state.inherited.delete(id);
  return create(state, endpoint, probeAtMs);
}

function create(state: State, endpoint: CircuitEndpoint, probeAtMs?: number): Circuit {
  const { circuits, nowMs, resetMs, rotation } = state;
  dropOldestIfFull(state);
  const circuit = createCircuit({
    url: endpoint.url,
    resetMs,
    nowMs,
    rotation,
    ...(probeAtMs !== undefined && { probeAtMs }),
    ...tellCircuitChanges(state, endpoint),
  });
  circuits.set(endpoint.id, circuit);
  return circuit;
}

function dropOldestIfFull(state: State): void {
  const { circuits, maxCircuits } = state;
  const [oldest] = circuits.keys();
  if (oldest !== undefined && circuits.size >= maxCircuits) drop(state, oldest);
}

/** Drops circuits that are closed and had no failure for a whole window, or open and not asked for. */
function dropIdle(state: State): void {
  const nowMs = state.nowMs();
  for (const [id, circuit] of state.circuits) {
    const keptMs = circuit.state() === 'closed' ? OPENS_WHEN.windowMs : FORGOTTEN_AFTER_MS;
    if (circuit.lastFailureMs() < nowMs - keptMs) drop(state, id);
  }
}

function drop({ circuits }: State, id: string): void {
  circuits.get(id)?.shutDown();
  circuits.delete(id);
}

/** An open circuit of our own stays: it is as new as the shared one, or Redis was away when it opened. */
async function takeOver(state: State): Promise<void> {
  try {
    const shared = await state.shared.takeOverCircuits();
    for (const [id, circuit] of state.circuits) {
      if (circuit.state() === 'closed') drop(state, id);
      else {
        shared.delete(id);
        state.shared.opened(id, circuit.probeAtMs());
      }
    }
    state.inherited = new Map([...shared].slice(0, MAX_INHERITED));
  } catch (error) {
    state.logger.warn(
      { error: messageOf(error) },
      'cannot read the open circuits of former owners',
    );
  }
}

function count({ circuits }: State): Record<CircuitState, number> {
  const counted = { closed: 0, open: 0, half_open: 0 };
  for (const circuit of circuits.values()) counted[circuit.state()] += 1;
  return counted;
}
