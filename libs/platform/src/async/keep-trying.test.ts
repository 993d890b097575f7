import { describe, expect, test } from '@jest/globals';
import { keepTrying } from './keep-trying.ts';

/** Fails this many times, then answers. */
function failing(times: number) {
  let calls = 0;
  return () => {
    calls += 1;
    return calls > times
      ? Promise.resolve(`call ${calls}`)
      : Promise.reject(new Error(`no ${calls}`));
  };
}

describe('keepTrying', () => {
  test('answers a first success at once', async () => {
    expect(await keepTrying(failing(0))).toBe('call 1');
  });

  test('goes on until the step succeeds, and tells of each failure', async () => {
    const failures: [unknown, number][] = [];
    const onFailure = (...failure: [unknown, number]) => failures.push(failure);
    expect(await keepTrying(failing(3), { firstWaitMs: 1, maxWaitMs: 1, onFailure })).toBe(
      'call 4',
    );
    expect(failures).toEqual([
      [new Error('no 1'), 1],
      [new Error('no 2'), 2],
      [new Error('no 3'), 3],
    ]);
  });

  test('takes a step that throws at once for a failure too', async () => {
    let calls = 0;
    const step = () => {
      calls += 1;
      if (calls === 1) throw new Error('at once');
      return Promise.resolve(calls);
    };
    expect(await keepTrying(step, { firstWaitMs: 1 })).toBe(2);
  });

  test('gives up with the last error when it was aborted before', async () => {
    const signal = AbortSignal.abort();
    await expect(keepTrying(failing(9), { signal })).rejects.toThrow('no 1');
  });

  test('ends a long wait when it is aborted, and tries a last time', async () => {
    const abort = new AbortController();
    const options = {
      firstWaitMs: 3_600_000,
      maxWaitMs: 3_600_000,
      signal: abort.signal,
      onFailure: () =>
        setImmediate(() => {
          abort.abort();
        }),
    };
    await expect(keepTrying(failing(9), options)).rejects.toThrow('no 2');
    const lucky = new AbortController();
    const onFailure = () =>
      setImmediate(() => {
        lucky.abort();
      });
    expect(await keepTrying(failing(1), { ...options, signal: lucky.signal, onFailure })).toBe(
      'call 2',
    );
  });
});
