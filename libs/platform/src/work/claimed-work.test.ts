import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { setImmediate as untilSettled } from 'node:timers/promises';
import {
  asyncNotes,
  createMemoryNotes,
  type StoredNote,
} from '../../../../test/support/memory/memory-notes.ts';
import {
  createVirtualTimers,
  type VirtualTimers,
} from '../../../../test/support/time/virtual-timers.ts';
import { LEASE_MS } from '../mongo/leases.ts';
import type { WorkNote } from '../mongo/work-notes.ts';
import {
  type ClaimedWork,
  type ClaimedWorkDeps,
  createClaimedWork,
  type WorkPlace,
} from './claimed-work.ts';

let timers: VirtualTimers;
let all: Map<string, StoredNote>;
/** The notes that were begun, in order. */
let begun: string[];
let places: Map<string, WorkPlace>;
/** Ends the work on a note, which is due again at a time or has ended. */
let end: Map<string, (dueAtMs: number | null) => void>;
let ends: ((dueAtMs: null) => void)[];
let warned: object[];
let claims: number;
let processes: ClaimedWork[];

beforeEach(() => {
  timers = createVirtualTimers();
  all = new Map();
  places = new Map();
  end = new Map();
  [begun, ends, warned, claims, processes] = [[], [], [], 0, []];
});

afterEach(async () => {
  const stops = processes.map((each) => each.stop());
  for (const finish of ends) finish(null);
  await Promise.all(stops);
});

function note(id: string, companyId = 'comp_a', dueAtMs = timers.nowMs()): void {
  all.set(id, { id, companyId, dueAtMs, claim: null });
}

const notes = () =>
  asyncNotes(
    createMemoryNotes<StoredNote, WorkNote>({
      all,
      change: (stored, changes) => Object.assign(stored, changes),
      toNote: ({ id, companyId }) => ({ id, companyId }),
    }),
  );

function work(overrides: Partial<ClaimedWorkDeps<WorkNote>> = {}): ClaimedWork {
  const made = createClaimedWork<WorkNote>({
    name: 'tested work',
    notes: notes(),
    slots: { ofAll: 20, ofCompany: 20 },
    work: ({ id }, place) => {
      begun.push(id);
      places.set(id, place);
      return new Promise((resolve) => {
        end.set(id, resolve);
        ends.push(resolve);
      });
    },
    fieldsOf: ({ id }) => ({ id }),
    newClaim: () => `claim-${(claims += 1)}`,
    nowMs: timers.nowMs,
    sleep: (ms, signal) =>
      new Promise<void>((resolve, reject) => {
        const cancel = timers.after(ms, resolve);
        signal.addEventListener('abort', () => {
          cancel();
          reject(signal.reason as Error);
        });
      }),
    logger: { warn: (fields: object) => void warned.push(fields) },
    ...overrides,
  });
  processes.push(made);
  return made;
}

const runFor = (ms: number) => timers.runUntil(timers.nowMs() + ms, untilSettled);

describe('work with notes', () => {
  test('begins with what has been due for the longest, once', async () => {
    note('late', 'comp_a', timers.nowMs() - 5);
    note('later', 'comp_b', timers.nowMs() - 1);
    note('not yet', 'comp_c', timers.nowMs() + 1);
    await Promise.all([work().tick(), work().tick()]);
    expect(begun).toEqual(['late', 'later']);
  });

  test('goes by company in turn, and leaves room for a company that has none', async () => {
    for (let n = 0; n < 50; n += 1) note(`a${n}`, 'comp_a', timers.nowMs() - 100);
    const process = work();
    await process.tick();
    expect(begun).toHaveLength(10);
    note('b0', 'comp_b');
    note('b1', 'comp_b');
    await process.tick();
    expect(begun.slice(10)).toEqual(['b0', 'b1']);
    // A company whose share is used is asked to make room.
    expect([places.get('a0')?.isWanted(), places.get('b0')?.isWanted()]).toEqual([true, false]);
  });

  test('begins soon with a company that comes while others have more notes than it can end', async () => {
    for (let n = 0; n < 300; n += 1) note(`busy${n}`, `comp_${n % 3}`, timers.nowMs() - 1_000);
    const real = notes();
    let [nowMs, claimed] = [timers.nowMs(), 0];
    const process = work({
      nowMs: () => nowMs,
      notes: {
        ...real,
        claim(claim) {
          nowMs += 50;
          claimed += 1;
          if (claimed === 30) note('new', 'comp_new', nowMs);
          return real.claim(claim);
        },
      },
      work({ id }) {
        begun.push(id);
        all.delete(id);
        return Promise.resolve(null);
      },
    });
    await process.tick();
    expect(begun.indexOf('new')).toBeGreaterThan(0);
    expect(begun.indexOf('new')).toBeLessThan(40);
    expect(begun).toHaveLength(301);
  });

  test('keeps its claim while it runs, for longer than a claim lasts', async () => {
    note('a0');
    const [first, second] = [work(), work()];
    await first.tick();
    await runFor(3 * LEASE_MS);
    await second.tick();
    expect(begun).toEqual(['a0']);
  });

  test('is done by another process when its claim cannot be renewed, and ends before', async () => {
    note('a0');
    const real = notes();
    const renew = () => Promise.reject(new Error('MongoDB is away'));
    await work({ notes: { ...real, renew } }).tick();
    const place = places.get('a0');
    await runFor(LEASE_MS - 1);
    expect(place?.signal.aborted).toBe(false);
    await runFor(1);
    expect(place?.signal.aborted).toBe(true);
    await work().tick();
    expect(begun).toEqual(['a0', 'a0']);
  });

  test('ends when another process has its note', async () => {
    note('a0');
    await work().tick();
    Object.assign(all.get('a0') ?? {}, { claim: 'of another' });
    await runFor(LEASE_MS);
    expect(places.get('a0')?.signal.aborted).toBe(true);
    end.get('a0')?.(timers.nowMs());
    await untilSettled();
    expect(all.get('a0')).toMatchObject({ claim: 'of another' });
  });

  test('is put back with its time, and begins at once when that is now', async () => {
    note('a0');
    await work().tick();
    end.get('a0')?.(timers.nowMs() + 5_000);
    await untilSettled();
    expect(all.get('a0')).toMatchObject({ claim: null, dueAtMs: timers.nowMs() + 5_000 });
    note('b0', 'comp_b');
    processes[0]?.wake();
    await untilSettled();
    end.get('b0')?.(timers.nowMs());
    await untilSettled();
    expect(begun).toEqual(['a0', 'b0', 'b0']);
  });

  test('that fails is tried again after a second, and logged', async () => {
    note('a0');
    const process = work({ work: () => Promise.reject(new Error('MongoDB is away')) });
    await process.tick();
    await process.idle();
    expect(all.get('a0')).toMatchObject({ claim: null, dueAtMs: timers.nowMs() + 1_000 });
    expect(warned).toMatchObject([{ work: 'tested work', id: 'a0', companyId: 'comp_a' }]);
  });

  test('finds a note that is written while it looks', async () => {
    const real = notes();
    let looks = 0;
    const process = work({
      notes: {
        ...real,
        async claim(claim) {
          looks += 1;
          const found = await real.claim(claim);
          if (looks === 1) {
            note('a0');
            process.wake();
          }
          return found;
        },
      },
    });
    await process.tick();
    expect(begun).toEqual(['a0']);
  });

  test('finds a note of the company whose work ends while it looks', async () => {
    note('a0');
    const real = notes();
    const claim: typeof real.claim = async (given) => {
      const found = await real.claim(given);
      if (given.exceptCompanyIds.length > 0) {
        end.get('a0')?.(timers.nowMs() + 60_000);
        await untilSettled();
      }
      return found;
    };
    const process = work({ notes: { ...real, claim } });
    await process.tick();
    note('a1');
    await process.tick();
    expect(begun).toEqual(['a0', 'a1']);
  });

  test('leaves its notes to others when its process stops', async () => {
    note('a0');
    const process = work();
    await process.tick();
    const stopped = process.stop();
    expect(places.get('a0')?.signal.aborted).toBe(true);
    end.get('a0')?.(timers.nowMs());
    await stopped;
    expect(all.get('a0')).toMatchObject({ claim: null, dueAtMs: timers.nowMs() });
    await work().tick();
    expect(begun).toEqual(['a0', 'a0']);
  });
});
