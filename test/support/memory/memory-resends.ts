import type { DeliveryStatus } from '@posthorn/domain/delivery.ts';
import type { MarkedDelivery, ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import {
  isOfOne,
  ResendMovedError,
  type Resend,
  type ResendStore,
} from '@posthorn/platform/mongo/resends/resends.ts';
import type { ResendPartStore } from '@posthorn/platform/mongo/resends/resends-of-app.ts';

export interface MemoryDelivery extends MarkedDelivery {
  attemptCount: number;
}

/** What the stores of resends promise, in memory. */
export interface MemoryResends {
  resends: ResendStore;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  running: Map<string, Resend>;
  deliveries: Map<string, MemoryDelivery>;
  /** The enabled webhooks of every app. */
  webhooks: Set<string>;
  add: (
    id: string,
    status: DeliveryStatus,
    attemptCount?: number,
    webhookId?: string,
  ) => MemoryDelivery;
  /** What the dispatcher makes of the attempt that is asked for. */
  settle: (deliveryId: string, isSuccess: boolean) => void;
}

export function createMemoryResends(): MemoryResends {
  const running = new Map<string, Resend>();
  const deliveries = new Map<string, MemoryDelivery>();
  const webhooks = new Set<string>();
  return {
    resends: resendsIn(running, deliveries, webhooks),
    marks: marksIn(deliveries),
    running,
    deliveries,
    webhooks,
    add(id, status, attemptCount = 7, webhookId = 'wh_1') {
      const ref = { messageId: `msg_${id}`, webhookId, companyId: 'comp_a', appId: null };
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
  webhooks: ReadonlySet<string>,
): ResendStore {
  const ahead = ({ webhookId: wanted, afterId, beforeId }: Resend): string[] =>
    [...deliveries.values()]
      .filter(({ id, status }) => id > afterId && id < beforeId && isFailure(status))
      .filter(({ webhookId: to }) => (wanted === null ? webhooks.has(to) : to === wanted))
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
    ...partsIn(running, webhooks),
    insert(resend) {
      const isTaken = [...running.values()].some(
        (each) => isRunning(each) && each.appId !== undefined && each.appId === resend.appId,
      );
      if (isTaken || running.has(resend._id)) return Promise.resolve(false);
      running.set(resend._id, resend);
      return Promise.resolve(true);
    },
    remove: ({ _id }) => settled(() => running.delete(_id)),
    listRunning: (afterId, limit) => {
      const behind = [...running.values()].filter(
        (each) => isRunning(each) && each._id > afterId && each.partOf === undefined,
      );
      return Promise.resolve(behind.slice(0, limit));
    },
    findOne: (_companyId, id) => Promise.resolve(running.get(id) ?? null),
    count: (resend) => Promise.resolve(ahead(resend).length),
    nextPage: (resend, limit) =>
      Promise.resolve(resend.webhookId === null ? [] : ahead(resend).slice(0, limit)),
    beginPage: (resend, page) => move(resend, { page: [...page] }),
    endPage: (resend, { succeeded, failed }) =>
      move(resend, {
        afterId: resend.page.at(-1) ?? resend.afterId,
        page: [],
        succeeded: resend.succeeded + succeeded,
        failed: resend.failed + failed,
      }),
    async finish(resend) {
      const { succeeded, failed } = resend;
      const total = succeeded + failed;
      await move(resend, { status: 'done', total, succeeded, failed });
      for (const { _id } of partsOf(running, resend._id)) running.delete(_id);
    },
  };
}

function partsOf(running: ReadonlyMap<string, Resend>, resendId: string): Resend[] {
  return [...running.values()].filter(({ partOf }) => partOf === resendId);
}

function partsIn(
  running: ReadonlyMap<string, Resend>,
  webhooks: ReadonlySet<string>,
): ResendPartStore {
  return {
    openParts: ({ _id }) => Promise.resolve(partsOf(running, _id).filter(isRunning)),
    lastWebhook({ _id }) {
      const begun = partsOf(running, _id).map(({ webhookId }) => webhookId ?? '');
      return Promise.resolve(begun.sort().at(-1) ?? '');
    },
    webhooksBehind(_resend, afterId, limit) {
      const behind = [...webhooks].sort().filter((id) => id > afterId);
      return Promise.resolve(behind.slice(0, limit));
    },
    findShown(_companyId, id) {
      const found = running.get(id);
      if (!found || found.partOf !== undefined) return Promise.resolve(null);
      const parts = isRunning(found) ? partsOf(running, id) : [];
      const sum = (count: 'succeeded' | 'failed'): number =>
        parts.reduce((total, part) => total + part[count], found[count]);
      return Promise.resolve({ ...found, succeeded: sum('succeeded'), failed: sum('failed') });
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
    _id: id,
    companyId: 'comp_a',
    webhookId: 'wh_1',
    afterId: '',
    beforeId: '~',
    page: [],
    status: 'running',
    total: 0,
    succeeded: 0,
    failed: 0,
    createdAt: new Date(1),
    updatedAt: new Date(1),
    ...overrides,
  };
}
