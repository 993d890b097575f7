import type { DeliveryStatus } from '@posthorn/domain/delivery.ts';
import type { MarkedDelivery, ResendMarks } from '@posthorn/platform/mongo/resend-marks.ts';
import {
  isOfOne,
  ResendMovedError,
  type Resend,
  type ResendStore,
} from '@posthorn/platform/mongo/resends.ts';

export interface MemoryDelivery extends MarkedDelivery {
  attemptCount: number;
}

/** What the stores of resends promise, in memory. */
export interface MemoryResends {
  resends: ResendStore;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  running: Map<string, Resend>;
  deliveries: Map<string, MemoryDelivery>;
  add: (id: string, status: DeliveryStatus, attemptCount?: number) => MemoryDelivery;
  /** What the dispatcher makes of the attempt that is asked for. */
  settle: (deliveryId: string, isSuccess: boolean) => void;
}

export function createMemoryResends(): MemoryResends {
  const running = new Map<string, Resend>();
  const deliveries = new Map<string, MemoryDelivery>();
  return {
    resends: resendsIn(running, deliveries),
    marks: marksIn(deliveries),
    running,
    deliveries,
    add(id, status, attemptCount = 7) {
      const ref = { messageId: `msg_${id}`, webhookId: 'wh_1', companyId: 'comp_a', appId: null };
      const made = { id, ...ref, createdAtMs: 1, status, attemptCount, mark: null };
      deliveries.set(id, made);
      return made;
    },
    settle(id, isSuccess) {
      const found = deliveries.get(id);
      if (found?.mark?.state !== 'asked') return;
      found.attemptCount = found.mark.attemptNumber;
      found.mark = { ...found.mark, state: isSuccess ? 'succeeded' : 'failed' };
      if (isSuccess) found.status = 'delivered';
    },
  };
}

function resendsIn(
  running: Map<string, Resend>,
  deliveries: ReadonlyMap<string, MemoryDelivery>,
): ResendStore {
  const ahead = ({ afterId, beforeId }: Resend): string[] =>
    [...deliveries.values()]
      .filter(({ id, status }) => id > afterId && id < beforeId && isFailure(status))
      .map(({ id }) => id)
      .sort();
  const move = (seen: Resend, changes: Partial<Resend>): Promise<Resend> => {
    const found = running.get(seen._id);
    const isSame = found?.afterId === seen.afterId && found.page.join() === seen.page.join();
    if (!isSame) return Promise.reject(new ResendMovedError(seen._id));
    const moved = { ...found, ...changes };
    running.set(seen._id, moved);
    return Promise.resolve(moved);
  };
  const settled = (work: () => unknown): Promise<void> => Promise.resolve(void work());
  return {
    insert: (resend) => settled(() => running.set(resend._id, resend)),
    remove: ({ _id }) => settled(() => running.delete(_id)),
    listRunning: (afterId, limit) => {
      const behind = [...running.values()].filter((each) => isRunning(each) && each._id > afterId);
      return Promise.resolve(behind.slice(0, limit));
    },
    findOne: (_companyId, id) => Promise.resolve(running.get(id) ?? null),
    count: (resend) => Promise.resolve(ahead(resend).length),
    nextPage: (resend, limit) => Promise.resolve(ahead(resend).slice(0, limit)),
    beginPage: (resend, page) => move(resend, { page: [...page] }),
    endPage: (resend, { succeeded, failed }) =>
      move(resend, {
        ...{ afterId: resend.page.at(-1) ?? resend.afterId, page: [] },
        ...{ succeeded: resend.succeeded + succeeded, failed: resend.failed + failed },
      }),
    async finish(resend) {
      await move(resend, { status: 'done', total: resend.succeeded + resend.failed });
    },
  };
}

function marksIn(deliveries: ReadonlyMap<string, MemoryDelivery>): MemoryResends['marks'] {
  return {
    ask(resend) {
      for (const id of resend.page) {
        const found = deliveries.get(id);
        if (!found || found.mark?.state === 'asked' || found.mark?.resendId === resend._id)
          continue;
        const isWanted = isOfOne(resend) ? found.status !== 'pending' : isFailure(found.status);
        const attemptNumber = found.attemptCount + 1;
        if (isWanted) found.mark = { resendId: resend._id, attemptNumber, state: 'asked' };
      }
      return Promise.resolve();
    },
    free(_companyId, resendId, ids) {
      for (const id of ids) {
        const mark = deliveries.get(id)?.mark;
        if (mark?.resendId === resendId && mark.state === 'asked') mark.state = 'failed';
      }
      return Promise.resolve();
    },
    read: (_companyId, ids) =>
      Promise.resolve(ids.flatMap((id) => structuredClone(deliveries.get(id)) ?? [])),
  };
}

const isRunning = ({ status }: Resend): boolean => status === 'running';

function isFailure(status: DeliveryStatus): boolean {
  return status === 'exhausted' || status === 'cancelled';
}

export function sampleResend(id: string, overrides: Partial<Resend> = {}): Resend {
  return {
    ...{ _id: id, companyId: 'comp_a', webhookId: 'wh_1', afterId: '', beforeId: '~' },
    ...{ page: [], status: 'running', total: 0, succeeded: 0, failed: 0 },
    ...{ createdAt: new Date(1), updatedAt: new Date(1) },
    ...overrides,
  };
}
