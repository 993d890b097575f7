import { QUIET } from '../chance/event-queue.ts';
import { EPOCH_MS, type Strikable, type World } from '../run/world.ts';

/** One life of a service: when it crashes, nothing it still does reaches anybody. */
export interface SimulatedProcess extends Strikable {
  /** Its wall clock. */
  nowMs: () => number;
  /** The latest time that its wall clock has shown since this virtual time. */
  latestShownSince: (sinceMs: number) => number;
  /** Asks a store or Kafka; `parts` take effect one by one, and other processes come in between. */
  request: <T>(request: Request<T>) => Promise<T>;
  onCrash: (act: () => void) => void;
  onDisturb: (act: () => void) => void;
}

export interface Request<T> {
  what: string;
  parts: readonly (() => void)[];
  answer: () => T;
  /** What the caller gets when nobody answers. */
  lost: () => Error;
  /** The client sends it again by itself when an answer is missing. */
  isRepeated?: true;
}

/** For a process that is gone: every wait is over, and what it does then reaches nobody. */
const END_OF_TIME_MS = 8_000_000_000_000_000;

interface Life {
  isAlive: boolean;
  offsetMs: number;
  /** Where its clock stood whenever it was set. */
  tops: { atMs: number; clockMs: number }[];
  endings: (() => void)[];
  disturbances: (() => void)[];
}

export function createProcess(world: World, name: string): SimulatedProcess {
  const life: Life = { isAlive: true, offsetMs: 0, tops: [], endings: [], disturbances: [] };
  const clockMs = (): number => EPOCH_MS + world.time.nowMs() + life.offsetMs;
  const process: SimulatedProcess = {
    name,
    isAlive: () => life.isAlive,
    nowMs: () => (life.isAlive ? Math.floor(clockMs()) : END_OF_TIME_MS),
    latestShownSince: (sinceMs) =>
      Math.max(
        clockMs(),
        ...life.tops.filter(({ atMs }) => atMs >= sinceMs).map((top) => top.clockMs),
      ),
    crash() {
      if (!life.isAlive) return;
      life.isAlive = false;
      world.tell(name, 'CRASH');
      for (const act of life.endings) act();
    },
    setClock(offsetMs) {
      life.tops.push({ atMs: world.time.nowMs(), clockMs: clockMs() });
      life.offsetMs = offsetMs;
      world.tell(name, `clock set off by ${offsetMs / 60_000} minutes`);
    },
    disturbGroup() {
      for (const act of life.disturbances) act();
    },
    request: (request) => ask(world, process, request),
    onCrash: (act) => life.endings.push(act),
    onDisturb: (act) => life.disturbances.push(act),
  };
  return process;
}

type Fate = 'answered' | 'unanswered' | 'in part' | 'repeated';

/** Sent, done and answered at moments of its own; a process may end between any two of them. */
function ask<T>(world: World, process: SimulatedProcess, request: Request<T>): Promise<T> {
  const { random, time, plan } = world;
  return new Promise((resolve, reject) => {
    world.strike(process);
    if (!process.isAlive()) return;
    const fate = drawFate(world, request);
    const sentMs = time.nowMs();
    const lastMs = Math.max(
      0,
      ...request.parts.map((part) => doOne(world, process, { fate, part })),
    );
    time.after(lastMs + random.between(0, plan.latencyMs), () => {
      world.strike(process);
      if (!process.isAlive()) return;
      world.tell(process.name, `${request.what}: ${fate} after ${time.nowMs() - sentMs} ms`);
      answer(request, fate, resolve, reject);
      world.strike(process);
    });
  });
}

function answer<T>(
  request: Request<T>,
  fate: Fate,
  resolve: (answer: T) => void,
  reject: (error: unknown) => void,
): void {
  if (fate === 'unanswered' || fate === 'in part') {
    reject(request.lost());
    return;
  }
  try {
    resolve(request.answer());
  } catch (error) {
    reject(error);
  }
}

/** Answers when it is done, in milliseconds from now. */
function doOne(
  world: World,
  process: SimulatedProcess,
  { fate, part }: { fate: Fate; part: () => void },
): number {
  const { random, time, plan } = world;
  const afterMs = random.between(0, plan.latencyMs);
  const times = fate === 'repeated' ? 2 : 1;
  time.after(afterMs, () => {
    // What a process had sent when it ended may arrive all the same.
    const isLost = process.isAlive() ? fate === 'in part' : true;
    const isDone = !isLost || random.isHit(0.5);
    for (let count = 0; isDone && count < times; count += 1) part();
    return QUIET;
  });
  return afterMs;
}

function drawFate<T>({ random, plan }: World, { isRepeated }: Request<T>): Fate {
  if (!random.isHit(plan.lossRate)) return 'answered';
  return random.pick(
    isRepeated ? ['unanswered', 'in part', 'repeated'] : ['unanswered', 'in part'],
  );
}
