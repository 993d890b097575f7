import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createPayloadMemory, type HeldPayload, type PayloadMemory } from './payload-memory.ts';

const KIB = 1_024;
/** What a payload counts for until it is loaded. */
const RESERVED = 64 * KIB;
/** Enough for four that are not loaded yet, two of each company. */
const BUDGET = 4 * RESERVED;

interface Asked {
  companyId: string;
  messageId: string;
  /** Undefined while it waits or loads. */
  held?: HeldPayload | null;
  error?: unknown;
}

interface Load {
  answer: (payload: Buffer | null) => void;
  fail: (error: Error) => void;
}

let memory: PayloadMemory;
/** Payloads that are being loaded, in the order in which they were started. */
let loads: Map<string, Load>;

beforeEach(() => {
  loads = new Map();
  memory = createPayloadMemory(
    (_companyId, messageId) =>
      new Promise((answer, fail) => {
        loads.set(messageId, { answer, fail });
      }),
    BUDGET,
  );
});

async function settled(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
}

async function ask(companyId: string, ...messageIds: string[]): Promise<Asked[]> {
  const all = messageIds.map((messageId): Asked => ({ companyId, messageId }));
  for (const each of all) {
    void memory.hold(companyId, each.messageId).then(
      (held) => (each.held = held),
      (error: unknown) => (each.error = error),
    );
  }
  await settled();
  return all;
}

async function answer(messageId: string, bytes: number | null): Promise<void> {
  const load = loads.get(messageId);
  if (!load) throw new Error(`${messageId} is not being loaded`);
  loads.delete(messageId);
  load.answer(bytes === null ? null : Buffer.alloc(bytes));
  await settled();
}

async function release(...all: Asked[]): Promise<void> {
  for (const { held } of all) held?.release();
  await settled();
}

const loading = (): string[] => [...loads.keys()];

describe('payloads of attempts under way', () => {
  it('count with their size once they are loaded, and not after their release', async () => {
    const all = await ask('a', 'm1');
    expect(memory.usedBytes()).toBe(RESERVED);
    await answer('m1', 100 * KIB);
    expect(memory.usedBytes()).toBe(100 * KIB);
    await release(...all);
    expect(memory.usedBytes()).toBe(0);
  });

  it('wait while the budget is used up, and are loaded in the order in which they came', async () => {
    const a = await ask('a', 'a1', 'a2');
    await ask('b', 'b1', 'b2', 'b3', 'b4', 'b5');
    expect(loading()).toEqual(['a1', 'a2', 'b1', 'b2']);
    for (const id of ['a1', 'a2', 'b1', 'b2']) await answer(id, RESERVED);
    await release(...a);
    expect(loading()).toEqual([]);
  });

  it('of one company use half of the budget at most, and those of others pass them', async () => {
    await ask('a', 'a1', 'a2', 'a3');
    expect(loading()).toEqual(['a1', 'a2']);
    await ask('b', 'b1');
    expect(loading()).toEqual(['a1', 'a2', 'b1']);
  });

  it('of one company keep their order, also after those of others passed them', async () => {
    const [a1, a2] = await ask('a', 'a1', 'a2', 'a3', 'a4', 'a5');
    const [b1] = await ask('b', 'b1', 'b2', 'b3');
    for (const id of ['a1', 'a2', 'b1', 'b2']) await answer(id, RESERVED);
    await release(b1 ?? fail());
    expect(loading()).toEqual(['b3']);
    await release(a1 ?? fail(), a2 ?? fail());
    expect(loading()).toEqual(['b3', 'a3', 'a4']);
  });

  it('of companies that wait are loaded in turns', async () => {
    const a = await ask('a', 'a1', 'a2');
    const b = await ask('b', 'b1', 'b2');
    await ask('c', 'c1', 'c2');
    await ask('d', 'd1', 'd2');
    for (const id of ['a1', 'a2', 'b1', 'b2']) await answer(id, RESERVED);
    await release(...a);
    expect(loading()).toEqual(['c1', 'd1']);
    await release(...b);
    expect(loading()).toEqual(['c1', 'd1', 'c2', 'd2']);
  });

  it('let others load as soon as they turn out to be small', async () => {
    await ask('a', 'a1', 'a2', 'a3');
    await answer('a1', KIB);
    expect(loading()).toEqual(['a2', 'a3']);
  });

  it('use no memory when the message is not stored any more', async () => {
    const all = await ask('a', 'a1', 'a2', 'a3');
    await answer('a1', null);
    expect(all[0]?.held).toBeNull();
    expect(loading()).toEqual(['a2', 'a3']);
    expect(memory.usedBytes()).toBe(2 * RESERVED);
  });

  it('use no memory when they cannot be loaded', async () => {
    const all = await ask('a', 'a1', 'a2', 'a3');
    loads.get('a1')?.fail(new Error('gone'));
    await settled();
    expect(all[0]?.error).toEqual(new Error('gone'));
    expect(memory.usedBytes()).toBe(2 * RESERVED);
    expect(loading()).toContain('a3');
  });

  it('are loaded whatever their size, one after the other when each uses the whole budget', async () => {
    const [large] = await ask('a', 'a1');
    await answer('a1', 2 * BUDGET);
    await ask('b', 'b1');
    expect(loading()).toEqual([]);
    await release(large ?? fail());
    expect(loading()).toEqual(['b1']);
  });
});

it('all payloads are loaded and released, whatever their size and order', async () => {
  const payload = fc.record({
    companyId: fc.constantFrom('a', 'b', 'c'),
    bytes: fc.option(fc.integer({ min: 0, max: 3 * RESERVED })),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(payload, { maxLength: 30 }), async (payloads) => {
      const all: Asked[] = [];
      for (const [n, { companyId }] of payloads.entries())
        all.push(...(await ask(companyId, `${n}`)));
      for (let round = 0; round < 100 && loading().length > 0; round += 1) {
        for (const id of loading()) await answer(id, payloads[Number(id)]?.bytes ?? null);
        // The oldest is released, and all of them when nothing is being loaded: none may depend on all.
        const held = all.filter(({ held }) => held);
        for (const each of loading().length === 0 ? held : held.slice(0, 1)) {
          await release(each);
          all.splice(all.indexOf(each), 1);
        }
      }
      expect(all.filter(({ held }) => held !== null)).toEqual([]);
      expect(memory.usedBytes()).toBe(0);
    }),
    { numRuns: 50 },
  );
});

function fail(): never {
  throw new Error('nobody asked');
}
