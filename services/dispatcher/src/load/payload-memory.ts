import { createFifo, type Fifo } from '@posthorn/platform/async/queues/fifo.ts';
import { createPlaceOrder, type PlaceOrder } from '@posthorn/platform/async/queues/place-order.ts';
import type { LoadPayload } from './load-payload.ts';

/** A payload that is in memory until its attempt releases it. */
export interface HeldPayload {
  payload: Buffer;
  release: () => void;
}

export interface PayloadMemory {
  /** Resolves with null when the message is not stored any more. Waits while the budget is used up. */
  hold: (companyId: string, messageId: string) => Promise<HeldPayload | null>;
  usedBytes: () => number;
}

/** What a payload counts for until it is loaded and its size is known. */
const RESERVED_BYTES = 65_536;

/** The attempts of one company that wait to load their payload. */
interface CompanyQueue {
  companyId: string;
  starts: Fifo<() => void>;
}

interface State {
  budgetBytes: number;
  usedBytes: number;
  usedByCompany: Map<string, number>;
  /** By company id. */
  queues: Map<string, CompanyQueue>;
  order: PlaceOrder<CompanyQueue>;
}

/**
 * Bounds the payloads of attempts under way: 2,000 of 256 KiB would take 512 MB. A company may use half
 * of the budget at most, so that large payloads to endpoints that hang do not stop the others.
 * Companies that wait take turns.
 */
export function createPayloadMemory(load: LoadPayload, budgetBytes: number): PayloadMemory {
  const state: State = {
    budgetBytes,
    usedBytes: 0,
    usedByCompany: new Map(),
    queues: new Map(),
    order: createPlaceOrder(),
  };
  return {
    usedBytes: () => state.usedBytes,
    async hold(companyId, messageId) {
      if (isWithinBudget(state, companyId)) addUsed(state, companyId, RESERVED_BYTES);
      else await waitForBudget(state, companyId);
      let bytes = 0;
      try {
        const payload = await load(companyId, messageId);
        bytes = payload?.length ?? 0;
        return payload && { payload, release: free.bind(null, state, companyId, bytes) };
      } finally {
        addUsed(state, companyId, bytes);
        free(state, companyId, RESERVED_BYTES);
      }
    },
  };
}

function isWithinBudget(
  { usedBytes, usedByCompany, budgetBytes }: State,
  companyId: string,
): boolean {
  return usedBytes < budgetBytes && (usedByCompany.get(companyId) ?? 0) < budgetBytes / 2;
}

function addUsed(state: State, companyId: string, bytes: number): void {
  const { usedByCompany } = state;
  state.usedBytes += bytes;
  const ofCompany = (usedByCompany.get(companyId) ?? 0) + bytes;
  if (ofCompany === 0) usedByCompany.delete(companyId);
  else usedByCompany.set(companyId, ofCompany);
}

function free(state: State, companyId: string, bytes: number): void {
  addUsed(state, companyId, -bytes);
  startWaiting(state);
}

function startWaiting(state: State): void {
  const { order } = state;
  const skipped: CompanyQueue[] = [];
  while (state.usedBytes < state.budgetBytes) {
    const queue = order.next();
    if (!queue) break;
    if (isWithinBudget(state, queue.companyId)) startNext(state, queue);
    else skipped.push(queue);
  }
  for (const queue of skipped) order.add(queue);
}

function startNext(state: State, queue: CompanyQueue): void {
  const { companyId, starts } = queue;
  addUsed(state, companyId, RESERVED_BYTES);
  starts.shift()?.();
  if (starts.size() > 0) state.order.add(queue);
  else state.queues.delete(companyId);
}

/** Resolves when the reserved bytes are counted for this attempt. */
function waitForBudget({ queues, order }: State, companyId: string): Promise<void> {
  return new Promise((resolve) => {
    const queue = queues.get(companyId) ?? { companyId, starts: createFifo() };
    queue.starts.push(resolve);
    queues.set(companyId, queue);
    order.add(queue);
  });
}
