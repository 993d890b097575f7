import { NOTHING_TO_AWAIT } from '../deterministic/event-queue.ts';
import { EPOCH_MS, type FaultTarget, type World } from '../world/world.ts';

/** One run of a service. After it has crashed, its actions have no effect on other processes or stores. */
export interface SimulatedProcess extends FaultTarget {
  /** Returns the time of its wall clock. */
  nowMs: () => number;
  /** Returns the latest time that its wall clock has shown since this virtual time. */
  latestClockSince: (sinceMs: number) => number;
  /** Sends a request to a store or Kafka. Its effects happen one by one, with those of other processes in between. */
  request: <T>(request: Request<T>) => Promise<T>;
  onCrash: (listener: () => void) => void;
  onRebalance: (listener: () => void) => void;
}

interface Request<T> {
  /** For the trace. */
  what: string;
  effects: readonly (() => void)[];
  /** Each takes effect after the one before, and when that was lost, none behind it does. */
  areOrdered?: boolean;
  /** Returns the response, or throws the error response, after all effects have happened. */
  respond: () => T;
  /** Returns the error that the caller gets if there is no response. */
  noResponse: () => Error;
  /** Whether the client sends the request again if there is no response. */
  isRetried?: true;
}

/** The wall clock of a crashed process: it ends every wait of the code, whose actions have no effect any more. */
const CLOCK_AFTER_CRASH_MS = 8_000_000_000_000_000;

interface State {
  isAlive: boolean;
  offsetMs: number;
  /** What its clock showed each time just before it was set. */
  clockReadings: { atMs: number; clockMs: number }[];
  crashListeners: (() => void)[];
  rebalanceListeners: (() => void)[];
}

export function createProcess(world: World, name: string): SimulatedProcess {
  const state: State = {
    isAlive: true,
    offsetMs: 0,
    clockReadings: [],
    crashListeners: [],
    rebalanceListeners: [],
  };
  const clockMs = (): number => EPOCH_MS + world.time.nowMs() + state.offsetMs;
  const process: SimulatedProcess = {
    name,
    isAlive: () => state.isAlive,
    nowMs: () => (state.isAlive ? Math.floor(clockMs()) : CLOCK_AFTER_CRASH_MS),
    latestClockSince: (sinceMs) =>
      Math.max(
        clockMs(),
        ...state.clockReadings
          .filter(({ atMs }) => atMs >= sinceMs)
          .map((reading) => reading.clockMs),
      ),
    crash() {
      if (!state.isAlive) return;
      state.isAlive = false;
      world.trace(name, 'CRASH');
      for (const listener of state.crashListeners) listener();
    },
    setClock(offsetMs) {
      state.clockReadings.push({ atMs: world.time.nowMs(), clockMs: clockMs() });
      state.offsetMs = offsetMs;
      world.trace(name, `clock offset set to ${offsetMs / 60_000} minutes`);
    },
    rebalanceGroup() {
      for (const listener of state.rebalanceListeners) listener();
    },
    request: (request) => sendRequest(world, process, request),
    onCrash: (listener) => state.crashListeners.push(listener),
    onRebalance: (listener) => state.rebalanceListeners.push(listener),
  };
  return process;
}

type RequestFate = 'ok' | 'no response' | 'partial' | 'duplicated';

/** Sends a request. Each effect and the response happen at times of their own; the process may crash between them. */
function sendRequest<T>(world: World, process: SimulatedProcess, request: Request<T>): Promise<T> {
  const { random, time, plan } = world;
  return new Promise((resolve, reject) => {
    world.injectFault(process);
    if (!process.isAlive()) return;
    const fate = drawFate(world, request);
    const sentMs = time.nowMs();
    const lastMs = request.areOrdered
      ? scheduleInOrder(world, process, { fate, effects: request.effects })
      : Math.max(
          0,
          ...request.effects.map((effect) => scheduleEffect(world, process, { fate, effect })),
        );
    time.after(lastMs + random.between(0, plan.latencyMs), () => {
      world.injectFault(process);
      if (!process.isAlive()) return;
      world.trace(process.name, `${request.what}: ${fate} after ${time.nowMs() - sentMs} ms`);
      respond(request, fate, resolve, reject);
      world.injectFault(process);
    });
  });
}

function respond<T>(
  request: Request<T>,
  fate: RequestFate,
  resolve: (response: T) => void,
  reject: (error: unknown) => void,
): void {
  if (fate === 'no response' || fate === 'partial') {
    reject(request.noResponse());
    return;
  }
  try {
    resolve(request.respond());
  } catch (error) {
    reject(error);
  }
}

/** Schedules one effect. Returns after how many milliseconds it happens. */
function scheduleEffect(
  world: World,
  process: SimulatedProcess,
  { fate, effect }: { fate: RequestFate; effect: () => void },
): number {
  const { random, time, plan } = world;
  const afterMs = random.between(0, plan.latencyMs);
  const times = fate === 'duplicated' ? 2 : 1;
  time.after(afterMs, () => {
    // A request that was sent before a crash may still take effect.
    const isLost = process.isAlive() ? fate === 'partial' : true;
    const isDone = !isLost || random.bool(0.5);
    for (let count = 0; isDone && count < times; count += 1) effect();
    return NOTHING_TO_AWAIT;
  });
  return afterMs;
}

/** Schedules effects that happen one after the other. Returns after how many milliseconds the last one happens. */
function scheduleInOrder(
  world: World,
  process: SimulatedProcess,
  { fate, effects }: { fate: RequestFate; effects: Request<unknown>['effects'] },
): number {
  const { random, time, plan } = world;
  let isEnded = false;
  let afterMs = 0;
  for (const effect of effects) {
    afterMs += random.between(0, plan.latencyMs);
    time.after(afterMs, () => {
      const mayBeLost = !process.isAlive() || fate === 'partial';
      isEnded ||= mayBeLost && random.bool(0.5);
      if (!isEnded) effect();
      return NOTHING_TO_AWAIT;
    });
  }
  return afterMs;
}

function drawFate<T>({ random, plan }: World, { isRetried }: Request<T>): RequestFate {
  if (!random.bool(plan.lossRate)) return 'ok';
  return random.pick(
    isRetried ? ['no response', 'partial', 'duplicated'] : ['no response', 'partial'],
  );
}

/** A process whose requests take effect and succeed at once, for tests of the simulated stores. */
export const INSTANT_PROCESS: Pick<SimulatedProcess, 'request' | 'nowMs'> = {
  nowMs: () => Date.now(),
  request({ effects, respond }) {
    for (const effect of effects) effect();
    return new Promise((resolve) => {
      resolve(respond());
    });
  },
};
