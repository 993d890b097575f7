import {
  bookTurn,
  createLine,
  endAttempt,
  hasRoom,
  isIdle,
  isSlow,
  mayStart,
  SLOW_MS,
  takeOut,
  type Lane,
  type Line,
  type Waiting,
} from './endpoint-line.ts';
import { createTurnOrder, poolOf, type Pool, type TurnOrder } from './turn-order.ts';

/** Leave to make one attempt. */
export interface Turn {
  /** The request begins: from here on the endpoint is judged by how long it takes. */
  begin: () => void;
  /** When it is over, or was not used. */
  leave: () => void;
}

export interface EndpointLanes {
  /** Resolves with a turn, or with null when the endpoint has no room in this lane. */
  enter: (webhookId: string, lane: Lane) => Promise<Turn | null>;
  /** When (milliseconds since 1970) an attempt without room may come again, behind earlier ones. */
  book: (webhookId: string, nowMs: number) => number;
  running: () => number;
  /** Finds endpoints that turned slow; to be called every 100 ms. */
  tick: () => void;
  /** Sends away whoever waits, and lets nobody wait any more. */
  close: () => void;
}

/** Attempts under way at once: to one endpoint, over all lanes; and in the fast and slow lanes. */
export interface LaneLimits {
  perEndpoint: number;
  fast: number;
  slow: number;
}

const FAST = ['first', 'retry'] as const;
const ALL = [...FAST, 'slow'] as const;
/** A record that waits holds back the commit of its partition. */
const MAX_WAIT_MS = 30_000;
/** Who waits takes room from others in the window: together this many for each socket. */
const MAX_WAITING = { fast: 0.5, slow: 16 };

interface Running {
  line: Line;
  lane: Lane;
  /** When its request began; null before. */
  begunMs: number | null;
  isOverdue: boolean;
  isOver: boolean;
}

interface State {
  limits: LaneLimits;
  monotonicMs: () => number;
  lines: Map<string, Line>;
  order: TurnOrder;
  /** Requests under way, in the order of their beginning. */
  running: Set<Running>;
  taken: Record<Pool, number>;
  waiting: Record<Pool, number>;
  /** Fast turns that have lasted for too long. */
  stuck: number;
  isClosed: boolean;
}

/**
 * Fair queues: every endpoint has a line and bounds of its own, and free sockets go round between
 * the lines. First attempts never stand behind retries. An endpoint that takes a second is slow: who
 * waits in its fast line is sent away (null), and one attempt at a time shows if it is well again.
 */
export function createEndpointLanes(
  limits: LaneLimits,
  monotonicMs: () => number = () => performance.now(),
): EndpointLanes {
  const state: State = {
    ...{ limits, monotonicMs, lines: new Map(), running: new Set(), order: createTurnOrder() },
    ...{ taken: { fast: 0, slow: 0 }, waiting: { fast: 0, slow: 0 }, stuck: 0, isClosed: false },
  };
  return {
    enter: enter.bind(null, state),
    book: (webhookId, nowMs) =>
      bookTurn(state.lines.get(webhookId) ?? createLine(webhookId), limits.perEndpoint, nowMs),
    running: () => state.running.size,
    tick: tick.bind(null, state),
    close() {
      state.isClosed = true;
      for (const line of state.lines.values()) sendAway(state, line, ALL);
    },
  };
}

function enter(state: State, webhookId: string, lane: Lane): Promise<Turn | null> {
  const line = state.lines.get(webhookId) ?? createLine(webhookId);
  const pool = poolOf(lane);
  const canStart = isReady(state, line, lane);
  if (canStart && state.taken[pool] < state.limits[pool]) {
    return Promise.resolve(start(state, line, lane));
  }
  const { limits, monotonicMs } = state;
  const isFull = state.isClosed || state.waiting[pool] >= limits[pool] * MAX_WAITING[pool];
  const fits = hasRoom(line, lane, limits.perEndpoint, isSlow(line, monotonicMs()));
  if (isFull || !fits) return Promise.resolve(null);
  state.lines.set(webhookId, line);
  if (canStart) state.order.add(line, lane);
  state.waiting[pool] += 1;
  return new Promise((resolve) => {
    const answer: Waiting['answer'] = (turn) => {
      state.waiting[pool] -= 1;
      resolve(turn === 'started' ? start(state, line, lane) : null);
    };
    line.waiting[lane].push({ sinceMs: state.monotonicMs(), answer });
  });
}

/** Slow endpoints together hold at most a quarter of the fast sockets. */
function isReady({ limits, stuck, monotonicMs }: State, line: Line, lane: Lane): boolean {
  const slow = isSlow(line, monotonicMs());
  if (slow && lane !== 'slow' && stuck >= limits.fast / 4) return false;
  return mayStart(line, lane, limits.perEndpoint, slow);
}

function start(state: State, line: Line, lane: Lane): Turn {
  const running: Running = { line, lane, begunMs: null, isOverdue: false, isOver: false };
  state.lines.set(line.webhookId, line);
  state.taken[poolOf(lane)] += 1;
  line.running[lane] += 1;
  return { begin: begin.bind(null, state, running), leave: leave.bind(null, state, running) };
}

function begin(state: State, running: Running): void {
  running.begunMs = state.monotonicMs();
  state.running.add(running);
}

function leave(state: State, running: Running): void {
  const { line, lane, begunMs, isOverdue } = running;
  if (running.isOver) return;
  running.isOver = true;
  const nowMs = state.monotonicMs();
  state.running.delete(running);
  state.taken[poolOf(lane)] -= 1;
  line.running[lane] -= 1;
  if (isOverdue) line.overdue -= 1;
  if (isOverdue && lane !== 'slow') state.stuck -= 1;
  if (begunMs !== null) endAttempt(line, nowMs - begunMs, nowMs);
  for (const each of ALL) makeReady(state, line, each);
  for (const pool of ['fast', 'slow'] as const) startWaiting(state, pool);
  if (isIdle(line) && !isSlow(line, nowMs)) state.lines.delete(line.webhookId);
}

function makeReady(state: State, line: Line, lane: Lane): void {
  if (line.waiting[lane].length > 0 && isReady(state, line, lane)) state.order.add(line, lane);
}

function startWaiting(state: State, pool: Pool): void {
  while (state.taken[pool] < state.limits[pool]) {
    const { line, lane } = state.order.next(pool) ?? {};
    if (!line || !lane) return;
    // What ran meanwhile may have taken the line's last place.
    if (isReady(state, line, lane)) line.waiting[lane].shift()?.answer('started');
    makeReady(state, line, lane);
  }
}

function tick(state: State): void {
  const nowMs = state.monotonicMs();
  for (const running of state.running) {
    if (nowMs - (running.begunMs ?? nowMs) < SLOW_MS) break;
    if (!running.isOverdue) markOverdue(state, running);
  }
  for (const [id, line] of state.lines) {
    sendAway(state, line, ALL, nowMs - MAX_WAIT_MS);
    if (isIdle(line) && !isSlow(line, nowMs)) state.lines.delete(id);
  }
}

function markOverdue(state: State, running: Running): void {
  const { line, lane } = running;
  running.isOverdue = true;
  line.overdue += 1;
  if (lane !== 'slow') state.stuck += 1;
  sendAway(state, line, FAST);
}

function sendAway({ order }: State, line: Line, lanes: readonly Lane[], beforeMs = Infinity): void {
  for (const lane of lanes) {
    for (const { answer } of takeOut(line, lane, beforeMs)) answer('no room');
    if (line.waiting[lane].length === 0) order.remove(line, lane);
  }
}
