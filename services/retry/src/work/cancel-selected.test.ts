import { describe, expect, it } from '@jest/globals';
import type { FilterCancellation } from '@posthorn/domain/delivery/filter-cancellation.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { Claimed } from '@posthorn/platform/mongo/work-notes.ts';
import {
  type CancelSelectedDeps,
  createCancelSelected,
  RECORDED_LATE_MS,
} from './cancel-selected.ts';

type Note = Claimed<FilterCancellation>;

const NOTE: FilterCancellation = {
  id: 'cncl_1',
  companyId: 'comp_a',
  filter: { eventType: 'order.paid' },
  beforeMs: 1_000,
  status: 'running',
  step: 'recorded',
  before: null,
  page: [],
  cancelled: 0,
  createdAtMs: 1_000,
  updatedAtMs: 1_000,
};

const unrecorded = (id: string): SettledDelivery => ({
  id,
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_a',
  appId: 'app_1',
  createdAtMs: 0,
  status: 'pending',
  reason: null,
  attempt: null,
  nextAttemptAtMs: 0,
  updatedAtMs: 0,
});

interface World {
  note: FilterCancellation | null;
  pending: Set<string>;
  cancelled: Set<string>;
  /** What waits behind these goes on. */
  madeDue: Set<string>;
  withoutDocument: string[];
  nowMs: number;
  isLost: boolean;
  failsOnce: boolean;
}

/** Pages of two deliveries. */
function harness(changes: Partial<World> = {}) {
  const world: World = {
    note: { ...NOTE },
    pending: new Set(['dlv_1', 'dlv_2', 'dlv_3']),
    cancelled: new Set(),
    madeDue: new Set(),
    withoutDocument: ['dlv_7'],
    nowMs: 1_000,
    isLost: false,
    failsOnce: false,
    ...changes,
  };
  const ended: number[] = [];
  /** Once in each run. */
  let isClaimed = false;
  const change = (fields: Partial<FilterCancellation>): Promise<boolean> => {
    if (world.isLost || !world.note) return Promise.resolve(false);
    world.note = { ...world.note, ...fields };
    return Promise.resolve(true);
  };
  const page = (ids: readonly string[], before: string | undefined) => {
    const left = ids.filter((id) => before === undefined || id > before);
    const found = left.slice(0, 2);
    return {
      found,
      examined: found.length,
      before: left.length > 2 ? (found.at(-1) ?? null) : null,
    };
  };
  const deps = {
    cancellations: {
      claim: () => {
        const { note } = world;
        if (note?.status !== 'running' || isClaimed) return Promise.resolve(null);
        isClaimed = true;
        return Promise.resolve({ ...note, claim: 'c1' });
      },
      renew: () => Promise.resolve(true),
      putBack: (_note: Note, dueAtMs: number) => {
        ended.push(dueAtMs);
        return Promise.resolve(dueAtMs + 1_000_000);
      },
      beginPage: (_note: Note, ids: readonly string[]) => change({ page: [...ids] }),
      endPage: (_note: Note, end: { cancelled: number }) =>
        change({ ...end, page: [], cancelled: (world.note?.cancelled ?? 0) + end.cancelled }),
      finish: async () => {
        await change({ status: 'done' });
      },
    },
    selected: {
      recorded: (_selection: unknown, _status: unknown, { before }: { before?: string }) => {
        const read = page([...world.pending].sort(), before);
        return Promise.resolve({ ...read, found: read.found.map((id) => ({ id })) });
      },
      unrecorded: (_selection: unknown, { before }: { before?: string }) => {
        const read = page(world.withoutDocument, before);
        return Promise.resolve({ ...read, found: read.found.map(unrecorded) });
      },
      cancel: (_companyId: string, ids: readonly string[]) => {
        const [first = '', ...others] = ids;
        const done = world.failsOnce ? [first] : [first, ...others];
        for (const id of done) if (world.pending.delete(id)) world.cancelled.add(id);
        if (!world.failsOnce) return Promise.resolve(ids.length);
        world.failsOnce = false;
        return Promise.reject(new Error('the store is away'));
      },
      countCancelled: (_companyId: string, ids: readonly string[]) =>
        Promise.resolve(ids.filter((id) => world.cancelled.has(id)).length),
    },
    sequences: {
      makeDueOf: (ids: readonly string[]) => {
        for (const id of ids) world.madeDue.add(id);
        return Promise.resolve();
      },
    },
    deliveries: {
      insertAll: (made: readonly SettledDelivery[]) => {
        for (const { id, status } of made) if (status === 'cancelled') world.cancelled.add(id);
        world.withoutDocument = [];
        return Promise.resolve(new Set<string>());
      },
    },
    checks: { positions: () => Promise.resolve({ nowMs: 0, checkedToMs: [0] }) },
    metrics: { finished: { inc: () => undefined } },
    newClaim: () => 'c1',
    nowMs: () => world.nowMs,
    sleep: () => new Promise(() => undefined),
    logger: { warn: () => undefined, info: () => undefined },
  } as unknown as CancelSelectedDeps;
  const run = async (): Promise<number[]> => {
    ended.length = 0;
    isClaimed = false;
    const work = createCancelSelected(deps);
    await work.tick();
    await work.idle();
    return [...ended];
  };
  return { world, run };
}

describe('the work on a cancellation by filter', () => {
  it('cancels what is recorded and what is not, and waits to look at what is recorded late', async () => {
    const { world, run } = harness();
    expect(await run()).toEqual([1_000 + RECORDED_LATE_MS]);
    expect([...world.cancelled].sort()).toEqual(['dlv_1', 'dlv_2', 'dlv_3', 'dlv_7']);
    expect([...world.madeDue].sort()).toEqual([...world.cancelled].sort());
    expect(world.note).toMatchObject({ status: 'running', step: 'recorded_late', cancelled: 4 });
    world.pending.add('dlv_8');
    world.nowMs += RECORDED_LATE_MS;
    expect(await run()).toEqual([]);
    expect(world.note).toMatchObject({ status: 'done', cancelled: 5 });
  });

  it('ends after what is recorded when only what waits is selected', async () => {
    const { world, run } = harness({ note: { ...NOTE, filter: { waiting: 'hold' } } });
    expect(await run()).toEqual([]);
    expect(world.note).toMatchObject({ status: 'done', cancelled: 3 });
    expect(world.withoutDocument).toEqual(['dlv_7']);
  });

  it('counts each once when a page failed half-way', async () => {
    const { world, run } = harness({ failsOnce: true });
    await run();
    expect(world.note).toMatchObject({ cancelled: 0, page: ['dlv_1', 'dlv_2'] });
    expect([...world.cancelled]).toEqual(['dlv_1']);
    await run();
    expect(world.note).toMatchObject({ step: 'recorded_late', cancelled: 4, page: [] });
  });

  it('stops when another process has its note', async () => {
    const { world, run } = harness({ isLost: true });
    expect(await run()).toEqual([1_000]);
    expect([...world.cancelled]).toEqual([]);
    expect(world.note).toMatchObject({ step: 'recorded', cancelled: 0 });
  });
});
