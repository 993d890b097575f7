import { beforeEach, describe, expect, it } from '@jest/globals';
import { createEndpointLanes, type EndpointLanes, type Turn } from './endpoint-lanes.ts';
import type { Lane } from './endpoint-line.ts';

let clockMs: number;
let lanes: EndpointLanes;

beforeEach(() => {
  clockMs = 10_000;
  lanes = open();
});

function open(limits: Partial<Parameters<typeof createEndpointLanes>[0]> = {}) {
  return createEndpointLanes({ perEndpoint: 16, fast: 1_000, slow: 100, ...limits }, () => clockMs);
}

interface Entered {
  id: string;
  lane: Lane;
  /** Undefined while it waits. */
  turn?: Turn | null;
}

/** Lets so many enter and shows at once who got a turn, who waits and who was sent away. */
async function enter(id: string, lane: Lane, count = 1): Promise<Entered[]> {
  const entered = Array.from({ length: count }, (): Entered => ({ id, lane }));
  for (const each of entered) {
    void lanes.enter(id, lane).then((turn) => {
      turn?.begin();
      each.turn = turn;
    });
  }
  await settled();
  return entered;
}

/** What is decided already has been told. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const count = (all: readonly Entered[]) => ({
  running: all.filter(({ turn }) => turn).length,
  waiting: all.filter(({ turn }) => turn === undefined).length,
  away: all.filter(({ turn }) => turn === null).length,
});

async function leave(...all: Entered[]): Promise<void> {
  for (const { turn } of all) turn?.leave();
  await settled();
}

describe('an endpoint', () => {
  it('has 16 attempts under way and 64 in its line, and no room for more', async () => {
    expect(count(await enter('a', 'first', 100))).toEqual({ running: 16, waiting: 64, away: 20 });
  });

  it('gives a place that comes free to who has waited longest', async () => {
    const all = await enter('a', 'first', 18);
    await leave(...all.slice(0, 1));
    expect(all[16]?.turn).toBeTruthy();
    expect(all[17]?.turn).toBeUndefined();
    await leave(...all.slice(0, 1));
    expect(lanes.running()).toBe(16);
  });

  it('keeps half of its places and half of its line for first attempts', async () => {
    expect(count(await enter('a', 'retry', 100))).toEqual({ running: 8, waiting: 32, away: 60 });
    expect(count(await enter('a', 'first', 100))).toEqual({ running: 8, waiting: 32, away: 60 });
  });

  it('holds its bound over all lanes together', async () => {
    const slow = await enter('a', 'slow', 16);
    expect(count(slow).running).toBe(16);
    expect(count(await enter('a', 'first', 5))).toEqual({ running: 0, waiting: 5, away: 0 });
    expect(lanes.running()).toBe(16);
  });

  it('lets what came over the slow lane have its share while first attempts keep coming', async () => {
    const first = await enter('a', 'first', 16);
    const slow = await enter('a', 'slow', 1);
    await enter('a', 'first', 50);
    await leave(...first.slice(0, 4));
    expect(slow[0]?.turn).toBeTruthy();
  });
});

it('sends away who has waited for half a minute, so that a commit is not held back for long', async () => {
  await enter('a', 'slow', 16);
  const early = await enter('a', 'slow', 2);
  clockMs += 10_000;
  const late = await enter('a', 'slow', 2);
  clockMs += 20_001;
  lanes.tick();
  await settled();
  expect([count(early).away, count(late).waiting]).toEqual([2, 2]);
});

describe('an endpoint that keeps an attempt for a second', () => {
  async function slowDown(): Promise<Entered[]> {
    const all = await enter('a', 'first', 40);
    clockMs += 1_000;
    lanes.tick();
    await settled();
    return all;
  }

  it('sends away whoever waits in its fast line, and whoever comes', async () => {
    expect(count(await slowDown())).toEqual({ running: 16, waiting: 0, away: 24 });
    expect(count(await enter('a', 'first', 5)).away).toBe(5);
    expect(count(await enter('a', 'retry', 5)).away).toBe(5);
    expect(count(await enter('b', 'first', 5)).running).toBe(5);
  });

  it('still lets its slow lane wait for a place', async () => {
    await slowDown();
    expect(count(await enter('a', 'slow', 300))).toEqual({ running: 0, waiting: 300, away: 0 });
  });

  it('lets nobody wait who would wait for half a minute, as far as one can tell', async () => {
    const all = await slowDown();
    clockMs += 14_000;
    await leave(...all.slice(0, 1));
    expect(count(await enter('a', 'slow', 50))).toEqual({ running: 1, waiting: 33, away: 16 });
  });

  it('has one fast attempt at a time until one shows that it is well again', async () => {
    await leave(...(await slowDown()));
    const tried = await enter('a', 'first', 3);
    expect(count(tried)).toEqual({ running: 1, waiting: 0, away: 2 });
    clockMs += 10;
    await leave(...tried);
    expect(count(await enter('a', 'first', 3)).running).toBe(3);
  });

  it('is forgiven after a minute without traffic', async () => {
    await leave(...(await slowDown()));
    clockMs += 60_000;
    lanes.tick();
    expect(count(await enter('a', 'first', 3)).running).toBe(3);
  });

  it('cannot take more than a quarter of the sockets together with others like it', async () => {
    lanes = open({ fast: 40 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) await enter(id, 'first', 2);
    clockMs += 1_000;
    lanes.tick();
    const [known] = await enter('a', 'first', 1);
    expect(known?.turn).toBeNull();
    expect(count(await enter('well', 'first', 16)).running).toBe(16);
  });
});

describe('endpoints that share the sockets', () => {
  it('take turns, however long the line of one of them is', async () => {
    lanes = open({ fast: 10 });
    const greedy = await enter('greedy', 'first', 15);
    expect(count(greedy)).toMatchObject({ running: 10, waiting: 5 });
    lanes = open({ fast: 100, perEndpoint: 200 });
    const many = await enter('many', 'first', 140);
    const few = await enter('few', 'first', 2);
    await leave(...many.slice(0, 4));
    expect(count(few).running).toBe(2);
    expect(count(many.slice(100)).running).toBe(2);
  });

  it('give one turn in four to retries when first attempts wait as well', async () => {
    lanes = open({ fast: 100, perEndpoint: 200 });
    const running = await enter('busy', 'first', 100);
    const retries = await enter('r', 'retry', 20);
    const first = await enter('f', 'first', 20);
    await leave(...running.slice(0, 8));
    expect(count(first).running).toBe(6);
    expect(count(retries).running).toBe(2);
  });

  it('do not fill the window with what waits: half as many as there are sockets', async () => {
    lanes = open({ fast: 10 });
    const all = await Promise.all('abcde'.split('').map((id) => enter(id, 'first', 4)));
    expect(count(all.flat())).toEqual({ running: 10, waiting: 5, away: 5 });
  });

  it('have a slow lane with sockets of its own', async () => {
    lanes = open({ fast: 5, slow: 5 });
    await Promise.all(['a', 'b'].map((id) => enter(id, 'slow', 16)));
    expect(count(await enter('c', 'first', 5)).running).toBe(5);
  });
});

describe('a stop', () => {
  it('sends away whoever waits and lets nobody wait any more', async () => {
    const all = [...(await enter('a', 'first', 20)), ...(await enter('b', 'slow', 20))];
    lanes.close();
    await settled();
    expect(count(all)).toEqual({ running: 32, waiting: 0, away: 8 });
    expect(count(await enter('a', 'slow', 1)).away).toBe(1);
  });
});
