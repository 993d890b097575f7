export interface WriteBehindDeps<Value> {
  /** What the values may use in memory, and what one of them uses, by estimate. */
  budgetBytes: number;
  valueBytes: number;
  /** Adds them to what is stored. Resolves with those that were refused. */
  write: (values: readonly Value[]) => Promise<readonly Value[]>;
  /** Adds the second to the first, in place. */
  add: (sum: Value, more: Value) => void;
  keyOf: (value: Value) => string;
  monotonicMs: () => number;
}

/** Sums that are added to in memory and written together. */
export interface WriteBehind<Value> {
  /** Returns the sum with this key, which may be added to at once; null when there is no room for a new one. */
  sumOf: (key: string, create: () => Value) => Value | null;
  /** Writes the sums that are old enough. When it rejects they stay, and the next ticks pause. */
  tick: () => Promise<void>;
  /** Writes all sums. Returns those that are not written. */
  flush: () => Promise<readonly Value[]>;
  usedBytes: () => number;
}

interface Sum<Value> {
  value: Value;
  sinceMs: number;
}

/**
 * A sum waits this long for more: with 20 endpoints at 650 attempts/s it is written once for 160 of them. What a
 * killed process had not written is lost.
 */
const MIN_AGE_MS = 5_000;
/**
 * How many sums that are old enough are written in a round, oldest first. There is one round a second, so that
 * statistics add 100 updates a second in each process, however many endpoints there are.
 */
const PER_ROUND = 100;
/**
 * Sums of this age are written in any case, beyond that number: a company is removed two minutes after it was
 * suspended, and nothing may be counted for it after that.
 */
const MAX_AGE_MS = 45_000;
const PAUSE_AFTER_FAILURE_MS = 10_000;

/** Sums in one write: more would block the event loop for a tenth of a second. */
const MAX_PER_WRITE = 500;

interface State<Value> extends WriteBehindDeps<Value> {
  /** In the order in which they were begun. */
  sums: Map<string, Sum<Value>>;
  /** How many are being written. */
  writing: number;
  pausedUntilMs: number;
}

/** Counting costs no write: what happens to one key within seconds is one update. */
export function createWriteBehind<Value>(deps: WriteBehindDeps<Value>): WriteBehind<Value> {
  const { budgetBytes, valueBytes, monotonicMs } = deps;
  const maxSums = Math.floor(budgetBytes / valueBytes);
  const state: State<Value> = { ...deps, sums: new Map(), writing: 0, pausedUntilMs: -Infinity };
  const { sums } = state;
  return {
    sumOf(key, create) {
      const known = sums.get(key);
      if (known) return known.value;
      if (sums.size + state.writing >= maxSums) return null;
      const value = create();
      sums.set(key, { value, sinceMs: monotonicMs() });
      return value;
    },
    async tick() {
      if (monotonicMs() < state.pausedUntilMs) return;
      let due: Value[];
      do {
        due = takeDue(state);
        await writeOut(state, due);
      } while (due.length === MAX_PER_WRITE);
    },
    async flush() {
      await writeOut(state, takeAll(state)).catch(() => undefined);
      return takeAll(state);
    },
    usedBytes: () => (sums.size + state.writing) * valueBytes,
  };
}

function takeDue<Value>({ sums, monotonicMs }: State<Value>): Value[] {
  const nowMs = monotonicMs();
  const due: Value[] = [];
  for (const [key, { value, sinceMs }] of sums) {
    const ageMs = nowMs - sinceMs;
    if (ageMs < MIN_AGE_MS || due.length === MAX_PER_WRITE) break;
    if (due.length >= PER_ROUND && ageMs < MAX_AGE_MS) break;
    sums.delete(key);
    due.push(value);
  }
  return due;
}

function takeAll<Value>({ sums }: State<Value>): Value[] {
  const all = [...sums.values()].map(({ value }) => value);
  sums.clear();
  return all;
}

async function writeOut<Value>(state: State<Value>, values: readonly Value[]): Promise<void> {
  if (values.length === 0) return;
  state.writing += values.length;
  let left = values;
  try {
    left = await state.write(values);
  } catch (error) {
    state.pausedUntilMs = state.monotonicMs() + PAUSE_AFTER_FAILURE_MS;
    throw error;
  } finally {
    state.writing -= values.length;
    for (const value of left) putBack(state, value);
  }
}

function putBack<Value>({ sums, keyOf, add, monotonicMs }: State<Value>, value: Value): void {
  const key = keyOf(value);
  const sum = sums.get(key);
  if (sum) add(sum.value, value);
  else sums.set(key, { value, sinceMs: monotonicMs() });
}
