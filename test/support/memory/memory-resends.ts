import type { DeliveryStatus, Outcome } from '@posthorn/domain/delivery/delivery.ts';
import { statusesToResend, type MarkedDelivery, type Resend } from '@posthorn/domain/resend.ts';
import type { WorkNotes } from '@posthorn/platform/mongo/work-notes.ts';
import type { ResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import {
  ResendMovedError,
  type ResendStore,
  spanOwnerOf,
  totalAtEnd,
} from '@posthorn/platform/mongo/webhooks/resends.ts';

import { asyncNotes, createMemoryNotes, type StoredNote } from './memory-notes.ts';

export interface MemoryDelivery extends MarkedDelivery {
  /** Of its last attempt; null when it had none. */
  lastOutcome: Outcome | null;
}

/** The stores of resends in memory. */
export interface MemoryResends {
  resends: ResendStore;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  running: Map<string, StoredResend>;
  deliveries: Map<string, MemoryDelivery>;
  /** Ids of the enabled webhooks. They belong to every app. */
  webhooks: Set<string>;
  add: (
    id: string,
    status: DeliveryStatus,
    attemptCount?: number,
    webhookId?: string,
    lastOutcome?: Outcome,
  ) => MemoryDelivery;
  /** Settles the resend that is marked, as the dispatcher does. */
  settle: (deliveryId: string, isSuccess: boolean) => void;
}

export function createMemoryResends(): MemoryResends {
  const running = new Map<string, StoredResend>();
  const deliveries = new Map<string, MemoryDelivery>();
  const webhooks = new Set<string>();
  return {
    resends: resendsIn(running, deliveries, webhooks),
    marks: marksIn(deliveries),
    running,
    deliveries,
    webhooks,
    add(id, status, attemptCount = 7, webhookId = 'wh_1', lastOutcome = 'http_5xx') {
      const ref = { messageId: `msg_${id}`, webhookId, companyId: 'comp_a', appId: null };
      const made = { id, ...ref, createdAtMs: 1, status, attemptCount, mark: null, lastOutcome };
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

/** With the claim of the process that works on it. */
export type StoredResend = Resend & Pick<StoredNote, 'claim'>;

function resendsIn(
  running: Map<string, StoredResend>,
  deliveries: ReadonlyMap<string, MemoryDelivery>,
  webhooks: ReadonlySet<string>,
): ResendStore {
  const remaining = ({
    companyId,
    webhookId: wanted,
    afterId,
    beforeId,
  }: Resend): MemoryDelivery[] =>
    [...deliveries.values()]
      .filter((each) => each.companyId === companyId)
      .filter(({ id, status }) => id > afterId && id < beforeId && isFailure(status))
      .filter(({ webhookId: to }) => (wanted === null ? webhooks.has(to) : to === wanted))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  const pageOf = (resend: Resend): string[] =>
    remaining(resend)
      .filter(({ lastOutcome }) => resend.outcome === null || lastOutcome === resend.outcome)
      .map(({ id }) => id);
  const change = (found: Resend, changes: Partial<StoredResend>): Resend => {
    const changed = { ...found, ...changes };
    running.set(found.id, changed);
    return changed;
  };
  const move = (
    seen: Resend,
    atMs: number | null,
    changes: Partial<StoredResend>,
  ): Promise<Resend> => {
    const found = running.get(seen.id);
    const isSame = found?.afterId === seen.afterId && found.page.join() === seen.page.join();
    if (!isSame || !isRunning(found)) return Promise.reject(new ResendMovedError(seen.id));
    return Promise.resolve(
      change(found, { ...changes, ...(atMs !== null && { updatedAtMs: atMs }) }),
    );
  };
  /** Resend id → the webhook whose failures it was begun for. */
  const spans = new Map<string, string | null>();
  const settled = (work: () => unknown): Promise<void> => Promise.resolve(void work());
  return {
    ...partsIn(running, webhooks),
    insert(resend) {
      const isTaken = [...running.values()].some(
        (each) =>
          isRunning(each) &&
          (isSameApp(each, resend) || isSameSpan(each, spans.get(each.id) ?? null, resend)),
      );
      if (isTaken || running.has(resend.id)) return Promise.resolve(false);
      running.set(resend.id, resend);
      spans.set(resend.id, spanOwnerOf(resend));
      return Promise.resolve(true);
    },
    remove: ({ id }) => settled(() => running.delete(id)),
    ...notesIn(running),
    keepScanned({ id }, scannedTo) {
      const found = running.get(id);
      return settled(() => found && change(found, { scannedTo }));
    },
    keepProgress: (resend, progress) => move(resend, null, { progress: structuredClone(progress) }),
    findOne(companyId, id) {
      const found = running.get(id);
      return Promise.resolve(found?.companyId === companyId ? found : null);
    },
    count: (resend) => Promise.resolve(remaining(resend).length),
    countAll: (resend) => Promise.resolve(remaining(resend).length),
    nextPage(resend, limit) {
      const all = resend.webhookId === null ? [] : pageOf(resend);
      const ids = all.slice(0, limit);
      return Promise.resolve({ ids, lookedTo: all.length < limit ? null : (ids.at(-1) ?? null) });
    },
    skipTo: (resend, afterId, atMs) => move(resend, atMs, { afterId }),
    beginPage: (resend, page, atMs) => move(resend, atMs, { page: [...page] }),
    endPage: (resend, { succeeded, failed }, atMs) =>
      move(resend, atMs, {
        afterId: resend.page.at(-1) ?? resend.afterId,
        page: [],
        progress: null,
        succeeded: resend.succeeded + succeeded,
        failed: resend.failed + failed,
      }),
    async finish(resend, atMs, status = 'done') {
      const { succeeded, failed } = resend;
      const total = totalAtEnd(resend, status);
      await move(resend, atMs, { status, total, succeeded, failed, progress: null });
      for (const { id } of partsOf(running, resend.id)) running.delete(id);
    },
    askToAbort(companyId, id, atMs) {
      const found = running.get(id);
      const isOpen = found?.companyId === companyId && isRunning(found);
      if (!isOpen || found.abortAskedAtMs !== null) return Promise.resolve();
      const isClaimed = typeof found.claim === 'string';
      change(found, { abortAskedAtMs: atMs, ...(!isClaimed && { dueAtMs: atMs }) });
      return Promise.resolve();
    },
    continueHeld(companyId, webhookId, atMs) {
      const held = [...running.values()].filter(
        (each) =>
          each.companyId === companyId &&
          (webhookId === null || each.webhookId === webhookId) &&
          isRunning(each) &&
          each.progress?.isHeld === true,
      );
      for (const { id, partOf } of held) {
        const noted = running.get(partOf ?? id);
        if (noted && typeof noted.claim !== 'string') change(noted, { dueAtMs: atMs });
      }
      return Promise.resolve(held.length > 0);
    },
  };
}

function notesIn(running: Map<string, StoredResend>): WorkNotes<Resend> {
  const notes = createMemoryNotes({
    all: running,
    change: (found, changes) => running.set(found.id, { ...found, ...changes }),
    isNote: (each) => isRunning(each) && each.partOf === null,
    toNote: ({ claim: _claim, ...resend }) => resend,
  });
  return asyncNotes({
    ...notes,
    putBack(resend, dueAtMs) {
      const askedAtMs = running.get(resend.id)?.abortAskedAtMs ?? null;
      return notes.putBack(
        resend,
        askedAtMs !== null && dueAtMs > askedAtMs + 30_000 ? 0 : dueAtMs,
      );
    },
  });
}

function partsOf(running: ReadonlyMap<string, Resend>, resendId: string): Resend[] {
  return [...running.values()].filter(({ partOf }) => partOf === resendId);
}

function partsIn(
  running: ReadonlyMap<string, Resend>,
  webhooks: ReadonlySet<string>,
): Pick<ResendStore, 'openParts' | 'lastWebhook' | 'webhooksAfter' | 'findShown' | 'listShown'> {
  return {
    openParts: ({ id }) => Promise.resolve(partsOf(running, id).filter(isRunning)),
    lastWebhook({ id }) {
      const begun = partsOf(running, id).map(({ webhookId }) => webhookId ?? '');
      return Promise.resolve(begun.sort().at(-1) ?? '');
    },
    webhooksAfter(_resend, afterId, limit) {
      const found = [...webhooks].sort().filter((id) => id > afterId);
      return Promise.resolve(found.slice(0, limit));
    },
    findShown(companyId, id) {
      const found = running.get(id);
      const isShown = found?.companyId === companyId && found.partOf === null;
      return Promise.resolve(isShown ? shownIn(running, found) : null);
    },
    listShown(companyId, { appId, webhookId, beforeId }, limit) {
      const found = [...running.values()]
        .filter((each) => each.companyId === companyId && each.partOf === null)
        .filter((each) => appId === undefined || each.appId === appId)
        .filter((each) => webhookId === undefined || each.webhookId === webhookId)
        .filter(({ id }) => beforeId === undefined || id < beforeId)
        .sort((a, b) => (a.id < b.id ? 1 : -1));
      return Promise.resolve(found.slice(0, limit).map((each) => shownIn(running, each)));
    },
  };
}

function shownIn(running: ReadonlyMap<string, Resend>, found: Resend): Resend {
  const parts = isRunning(found) ? partsOf(running, found.id) : [];
  const sum = (count: 'succeeded' | 'failed'): number =>
    parts.reduce((total, part) => total + part[count], found[count]);
  const times = parts.map((part) => part.updatedAtMs);
  const updatedAtMs = parts.length > 0 ? Math.max(...times) : found.updatedAtMs;
  const counts = { succeeded: sum('succeeded'), failed: sum('failed') };
  return { ...found, ...counts, updatedAtMs };
}

function marksIn(deliveries: ReadonlyMap<string, MemoryDelivery>): MemoryResends['marks'] {
  return {
    ask(resend) {
      for (const id of resend.page) {
        const found = deliveries.get(id);
        if (found?.companyId !== resend.companyId) continue;
        if (found.mark?.state === 'asked' || found.mark?.resendId === resend.id) continue;
        if (!statusesToResend(resend).includes(found.status)) continue;
        const attemptNumber = found.attemptCount + 1;
        found.mark = { resendId: resend.id, attemptNumber, state: 'asked' };
      }
      return Promise.resolve();
    },
    free(companyId, resendId, ids) {
      for (const id of ids) {
        const found = deliveries.get(id);
        const mark = found?.companyId === companyId ? found.mark : null;
        if (mark?.resendId === resendId && mark.state === 'asked') mark.state = 'failed';
      }
      return Promise.resolve();
    },
    read(companyId, ids) {
      const found = ids.flatMap((id) => structuredClone(deliveries.get(id)) ?? []);
      return Promise.resolve(found.filter((each) => each.companyId === companyId));
    },
  };
}

const isRunning = ({ status }: Resend): boolean => status === 'running';

function isFailure(status: DeliveryStatus): boolean {
  return status === 'exhausted' || status === 'cancelled';
}

/** MongoDB removes resends that were created before the retention time, whenever it gets to it. */
export const YEAR_2100_MS = 4_102_444_800_000;

export function sampleResend(id: string, overrides: Partial<Resend> = {}): Resend {
  return {
    id,
    companyId: 'comp_a',
    webhookId: 'wh_1',
    appId: null,
    kind: 'resend',
    eventTypes: [],
    partOf: null,
    outcome: null,
    filter: null,
    afterId: '',
    beforeId: '~',
    page: [],
    status: 'running',
    progress: null,
    scannedTo: '',
    dueAtMs: null,
    abortAskedAtMs: null,
    total: 0,
    succeeded: 0,
    failed: 0,
    createdAtMs: YEAR_2100_MS,
    updatedAtMs: 1,
    ...overrides,
  };
}

function isSameApp(one: Resend, other: Resend): boolean {
  return one.appId !== null && one.appId === other.appId;
}

function isSameSpan(one: Resend, spanOf: string | null, other: Resend): boolean {
  return spanOf !== null && spanOf === spanOwnerOf(other) && one.companyId === other.companyId;
}
