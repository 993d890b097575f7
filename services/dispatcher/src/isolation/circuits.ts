import type { Trigger } from '@posthorn/domain/delivery/delivery.ts';
import { startTicker } from '@posthorn/platform/async/loop.ts';
import type { ReportIncident } from '@posthorn/platform/records/operator-incidents.ts';
import type {
  CircuitOwner,
  CircuitTimes,
  InheritedCircuit,
  OpenCircuits,
} from '@posthorn/platform/redis/open-circuits.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import {
  blockOf,
  type CircuitBlock,
  type CircuitReport,
  countsAsFailure,
  OPENS_WHEN,
  seededSuccesses,
} from './circuit-rules.ts';
import { MAX_INHERITED } from './host-pace.ts';

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
  /**
   * To be called when the partitions of this process have changed. Drops the circuits of those that it does not have
   * now: their next owner changes them. Reads the open circuits of those that are new, for some seconds; of those that
   * Redis did not answer for, nothing is known until the next call.
   */
  own: (partitions: ReadonlySet<number>) => Promise<void>;
  /** To be called when Redis was away: stores the open circuits again, and reads those of former owners. */
  restore: () => Promise<void>;
  /** Circuits by state, for the metrics. */
  count: () => Record<CircuitState, number>;
  /** How many open circuits of former owners are kept that were not needed yet. */
  inherited: () => number;
  stop: () => void;
}

export interface CircuitsDeps {
  shared: Pick<OpenCircuits, 'takeOver' | 'opened' | 'closed'>;
  /** Returns the partition of the webhook's records. */
  partitionOf: (webhookId: string) => number;
  logger: Pick<Logger, 'info' | 'warn'>;
  /** Reports to the operator when a circuit opens, and when it closes. */
  report: ReportIncident;
  nowMs: () => number;
  /** How long an open circuit waits before its probe. */
  resetMs: number;
  /** Beyond this many, the one that failed longest ago is dropped. */
  maxCircuits: number;
}

/** Longer than the longest wait of a deferred record. */
const FORGOTTEN_AFTER_MS = 12 * 3_600_000;
/**
 * The records of new partitions wait for their circuits. Without an end, those of 2,400 partitions would wait 300 s for
 * a node of a Redis cluster that hangs.
 */
const TAKEN_OVER_WITHIN_MS = 5_000;
/** What one circuit takes in memory, mostly opossum's. */
export const CIRCUIT_BYTES = 13_000;

interface State extends CircuitsDeps {
  /** In the order of their last failures. */
  circuits: Map<string, Circuit>;
  /** Open circuits of former owners that were not needed here yet, by webhook id. */
  inherited: Map<string, InheritedCircuit>;
  /** The partitions of this process. */
  owned: ReadonlySet<number>;
  /** Those of them whose former owners' circuits were read. */
  read: Set<number>;
  rotation: EventEmitter;
}

/** Circuits by endpoint: created at the first failure, dropped after two minutes without one. */
export function createCircuits(deps: CircuitsDeps): Circuits {
  const rotation = new EventEmitter().setMaxListeners(0);
  const state: State = {
    ...deps,
    circuits: new Map(),
    inherited: new Map(),
    owned: new Set(),
    read: new Set(),
    rotation,
  };
  const ticker = startTicker(OPENS_WHEN.windowMs / OPENS_WHEN.buckets, () => {
    rotation.emit('rotate');
    dropIdle(state);
  });
  return {
    refresh: (endpoint) => void refresh(state, endpoint),
    blockOf: (endpoint, trigger) => blockOf(find(state, endpoint), trigger, deps),
    beginAttempt: (endpoint) => beginAttempt(state, endpoint),
    own: (partitions) => own(state, partitions),
    restore: () => restore(state),
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
      if (!present && (!hasFailed || !isOwned(state, endpoint.id))) return;
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
    reportUrlChanged(state, circuit.owner, wasOpen);
  }
  const inherited = state.inherited.get(id);
  if (!inherited) return undefined;
  state.inherited.delete(id);
  return create(state, endpoint, inherited);
}

function create(
  state: State,
  { id: webhookId, companyId, url }: CircuitEndpoint,
  inherited?: InheritedCircuit,
): Circuit {
  const { circuits, nowMs, resetMs, rotation } = state;
  dropOldestIfFull(state);
  const owner = { webhookId, companyId, partition: state.partitionOf(webhookId) };
  const changes = reportCircuitChanges(state, owner);
  const circuit = createCircuit({ url, owner, resetMs, nowMs, rotation, inherited, ...changes });
  circuits.set(webhookId, circuit);
  return circuit;
}

/** An attempt may end here after its partition has gone to another process, which has a circuit of its own. */
function isOwned({ owned, partitionOf }: State, webhookId: string): boolean {
  return owned.has(partitionOf(webhookId));
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
    const isClosed = circuit.state() === 'closed';
    const keptMs = isClosed ? OPENS_WHEN.windowMs : FORGOTTEN_AFTER_MS;
    if (circuit.lastFailureMs() >= nowMs - keptMs) continue;
    drop(state, id);
    if (!isClosed) state.shared.closed(circuit.owner);
  }
  for (const [webhookId, { probeAtMs, companyId, partition }] of state.inherited) {
    if (probeAtMs >= nowMs - FORGOTTEN_AFTER_MS) continue;
    state.inherited.delete(webhookId);
    state.shared.closed({ webhookId, companyId, partition });
  }
}

function drop({ circuits }: State, id: string): void {
  circuits.get(id)?.shutDown();
  circuits.delete(id);
}

async function own(state: State, partitions: ReadonlySet<number>): Promise<void> {
  state.owned = partitions;
  for (const [id, { owner }] of state.circuits) {
    if (!partitions.has(owner.partition)) drop(state, id);
  }
  for (const [id, { partition }] of state.inherited) {
    if (!partitions.has(partition)) state.inherited.delete(id);
  }
  for (const partition of state.read) {
    if (!partitions.has(partition)) state.read.delete(partition);
  }
  await inherit(state);
}

async function restore(state: State): Promise<void> {
  for (const circuit of state.circuits.values()) {
    if (circuit.state() === 'closed') continue;
    const times = { probeAtMs: circuit.probeAtMs(), sinceMs: circuit.sinceMs() };
    state.shared.opened(circuit.owner, times);
  }
  state.read.clear();
  await inherit(state);
}

/** An open circuit of our own stays: it is as new as the shared one, or Redis was away when it opened. */
async function inherit(state: State): Promise<void> {
  const { circuits, inherited, read, logger } = state;
  const unread = [...state.owned].filter((partition) => !read.has(partition));
  if (unread.length === 0) return;
  try {
    const limits = { most: MAX_INHERITED - inherited.size, withinMs: TAKEN_OVER_WITHIN_MS };
    const takenOver = await state.shared.takeOver(unread, limits);
    for (const [id, circuit] of takenOver.circuits) {
      if (!state.owned.has(circuit.partition)) continue;
      const present = circuits.get(id);
      if (present && present.state() !== 'closed') continue;
      drop(state, id);
      inherited.set(id, circuit);
    }
    for (const partition of takenOver.read) if (state.owned.has(partition)) read.add(partition);
    const missed = unread.length - takenOver.read.length;
    if (missed > 0)
      logger.warn({ partitions: missed }, 'cannot read all open circuits of former owners');
  } catch (error) {
    logger.warn({ error: messageOf(error) }, 'cannot read the open circuits of former owners');
  }
}

function count({ circuits }: State): Record<CircuitState, number> {
  const counted = { closed: 0, open: 0, half_open: 0 };
  for (const circuit of circuits.values()) counted[circuit.state()] += 1;
  return counted;
}

type CircuitState = 'closed' | 'open' | 'half_open';

export interface Probe {
  sinceMs: number;
  /** Resolves when it is over. */
  ended: Promise<void>;
}

/** The circuit of one endpoint. Times are milliseconds since 1970. */
export interface Circuit {
  url: string;
  owner: CircuitOwner;
  state: () => CircuitState;
  /** When the next probe may be made; in the past once the circuit is half open. */
  probeAtMs: () => number;
  /** When it opened; 0 while it is closed. */
  sinceMs: () => number;
  /** Grows each time it opens: an attempt that began before the last opening says nothing about now. */
  openings: () => number;
  lastFailureMs: () => number;
  /** The probe that is under way; one at a time finds out whether an open circuit can close. */
  probe: () => Probe | null;
  /** Returns a function to call when the probe is over. */
  beginProbe: () => () => void;
  /** Counts an attempt that was made while the circuit was closed. */
  countAttempt: (hasFailed: boolean) => Promise<void>;
  /** Applies the outcome of a probe: closes, or stays open for another reset. */
  endProbe: (hasFailed: boolean) => void;
  /** Frees what opossum holds; a circuit dropped without it would leak. */
  shutDown: () => void;
}

interface CircuitOptions extends CircuitChanges {
  url: string;
  owner: CircuitOwner;
  /** How long an open circuit waits before its probe. */
  resetMs: number;
  nowMs: () => number;
  /** One timer moves the windows of all circuits, and bounds the times of their probes. */
  rotation: EventEmitter;
  /** When given, the circuit starts open, as its former owner had it. */
  inherited?: CircuitTimes | undefined;
}

/** opossum's own defaults would open at the first failure. */
const OPOSSUM_OPTIONS = {
  volumeThreshold: OPENS_WHEN.minAttempts,
  errorThresholdPercentage: OPENS_WHEN.failedAbovePercent,
  rollingCountTimeout: OPENS_WHEN.windowMs,
  rollingCountBuckets: OPENS_WHEN.buckets,
  timeout: false,
  enableSnapshots: false,
  rollingPercentilesEnabled: false,
  // The longest that a timer can be: opossum never makes the circuit half open by itself.
  resetTimeout: 2_147_483_647,
} as const;

/**
 * What opossum does here: it counts successes and failures in a rolling window, applies the rule of
 * when-circuit-opens.ts to them, and keeps the state closed or open.
 *
 * What it does not do here:
 * - It does not run the attempts. Only their outcomes are fired. With attempts inside, a probe that
 *   hangs would block its half-open state for ever, and an attempt that began before the opening and
 *   succeeds late would close the circuit.
 * - It does not time the probe. The time of the probe is kept here, so that it can be handed over to
 *   the next owner of the partition. Its half-open state is therefore never entered.
 * - Its timeout, percentiles and snapshots are off: the sender has its own deadline, and they cost
 *   memory for each circuit.
 */
function createCircuit(options: CircuitOptions): Circuit {
  const { nowMs, resetMs, rotation } = options;
  const opossum = new CircuitBreaker(resolveOrReject, {
    ...OPOSSUM_OPTIONS,
    rotateBucketController: rotation,
  });
  let { probeAtMs, sinceMs } = options.inherited ?? { probeAtMs: 0, sinceMs: 0 };
  let openings = 0;
  let lastFailureMs = nowMs();
  if (options.inherited) opossum.open();
  const waitForProbe = (report: (times: CircuitTimes) => void): void => {
    openings += 1;
    probeAtMs = nowMs() + resetMs;
    report({ probeAtMs, sinceMs });
  };
  /** No probe is more than one reset away; a later time means that the clock was set back. */
  const boundedProbeAtMs = (): number => Math.min(probeAtMs, nowMs() + resetMs);
  const keepBound = (): void => void (probeAtMs = boundedProbeAtMs());
  rotation.on('rotate', keepBound);
  opossum.on('open', () => {
    sinceMs = nowMs();
    waitForProbe(options.onOpen);
  });
  opossum.on('close', options.onClose);
  return {
    url: options.url,
    owner: options.owner,
    ...createProbe(nowMs),
    state: () => (opossum.closed ? 'closed' : boundedProbeAtMs() > nowMs() ? 'open' : 'half_open'),
    probeAtMs: boundedProbeAtMs,
    sinceMs: () => sinceMs,
    openings: () => openings,
    lastFailureMs: () => lastFailureMs,
    async countAttempt(hasFailed) {
      if (hasFailed) lastFailureMs = nowMs();
      await opossum.fire(hasFailed).catch(() => undefined);
    },
    endProbe(hasFailed) {
      if (!hasFailed) opossum.close();
      else {
        lastFailureMs = nowMs();
        waitForProbe(options.onStayOpen);
      }
    },
    shutDown: () => {
      rotation.off('rotate', keepBound);
      opossum.shutdown();
    },
  };
}

function resolveOrReject(hasFailed: boolean): Promise<void> {
  return hasFailed ? Promise.reject(new Error('the attempt failed')) : Promise.resolve();
}

function createProbe(nowMs: () => number): Pick<Circuit, 'probe' | 'beginProbe'> {
  let probe: Probe | null = null;
  return {
    probe: () => probe,
    beginProbe() {
      let end: () => void = () => undefined;
      const ended = new Promise<void>((resolve) => (end = resolve));
      probe = { sinceMs: nowMs(), ended };
      return () => {
        probe = null;
        end();
      };
    },
  };
}

/** Reports that the circuit of an endpoint has changed: to the next owner, in the log, and to the operator. */
interface CircuitChanges {
  /** The circuit opened. */
  onOpen: (times: CircuitTimes) => void;
  /** A probe failed: it was open before, and is open until the next one. */
  onStayOpen: (times: CircuitTimes) => void;
  onClose: () => void;
}

interface Deps {
  shared: Pick<OpenCircuits, 'opened' | 'closed'>;
  logger: Pick<Logger, 'info'>;
  report: ReportIncident;
  resetMs: number;
}

function reportCircuitChanges(
  { shared, logger, report, resetMs }: Deps,
  owner: CircuitOwner,
): CircuitChanges {
  const whose = { webhookId: owner.webhookId, companyId: owner.companyId };
  return {
    onOpen(times) {
      shared.opened(owner, times);
      logger.info({ ...whose, resetMs }, 'circuit open');
      const detail = `most attempts of two minutes failed, the next one is made in ${resetMs} ms`;
      report({ type: 'circuit.opened', ...whose, detail });
    },
    onStayOpen(times) {
      shared.opened(owner, times);
      logger.info({ ...whose, resetMs }, 'circuit still open, the probe failed');
    },
    onClose() {
      shared.closed(owner);
      logger.info(whose, 'circuit closed');
      report({ type: 'circuit.closed', ...whose, detail: 'an attempt succeeded' });
    },
  };
}

/** Reports the circuit of a former URL as closed, if it was reported as open. */
function reportUrlChanged(
  { shared, logger, report }: Deps,
  owner: CircuitOwner,
  wasOpen: boolean,
): void {
  shared.closed(owner);
  if (!wasOpen) return;
  const whose = { webhookId: owner.webhookId, companyId: owner.companyId };
  logger.info(whose, 'circuit closed, the URL was changed');
  report({ type: 'circuit.closed', ...whose, detail: 'the URL of the webhook was changed' });
}
