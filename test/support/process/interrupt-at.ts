/** When a process ends: before the call does anything, or after it did and before it returns. */
export type Moment = 'before' | 'after';

export interface Interruption {
  /** Wraps every function of an object; the call with the given number, over all of them, throws. */
  wrap: <T extends object>(target: T) => T;
  /** Returns false when the work ended before that call. */
  wasReached: () => boolean;
}

/** Interrupts some work at its nth outside call, so that a test can interrupt it at each call in turn. */
export function interruptAt(nth: number, moment: Moment): Interruption {
  let calls = 0;
  const ended = (): Error => new Error(`the process ended at call ${nth}`);
  const interrupted = async (call: () => unknown): Promise<unknown> => {
    calls += 1;
    if (calls > nth || (calls === nth && moment === 'before')) throw ended();
    const answer = await call();
    if (calls >= nth) throw ended();
    return answer;
  };
  return {
    wrap: <T extends object>(target: T) =>
      new Proxy(target, {
        get(object, name, receiver) {
          const found: unknown = Reflect.get(object, name, receiver);
          if (typeof found !== 'function') return found;
          return (...args: unknown[]) =>
            interrupted(() => Reflect.apply(found, object, args) as unknown);
        },
      }),
    wasReached: () => calls >= nth,
  };
}
