import { createFifo, type Fifo } from '@posthorn/platform/async/fifo.ts';
import { createPlaceOrder, type PlaceOrder } from '@posthorn/platform/async/place-order.ts';
import type { LoadPayload } from './load-payload.ts';

/** A payload that was loaded, as long as its attempt needs it. */
export interface HeldPayload {
  payload: Buffer;
  release: () => void;
}

export interface PayloadMemory {
  /** Null when the message is not stored any more. Waits while too much is held. */
  hold: (companyId: string, messageId: string) => Promise<HeldPayload | null>;
  usedBytes: () => number;
}

/** How large a payload is shows when it was loaded; until then it counts for this. */
const RESERVED_BYTES = 65_536;

/** The payloads that wait of one company. */
interface Line {
  companyId: string;
  starts: Fifo<() => void>;
}

interface State {
  budgetBytes: number;
  usedBytes: number;
  usedBy: Map<string, number>;
  /** Of the companies whose payloads wait. */
  lines: Map<string, Line>;
  order: PlaceOrder<Line>;
}

/**
 * Bounds the payloads of attempts under way: 2,000 of 256 KiB would take 512 MB. A company holds half
 * of the budget at most, so that large payloads to endpoints that hang stop no others; companies that
 * wait take turns.
 */
export function createPayloadMemory(load: LoadPayload, budgetBytes: number): PayloadMemory {
  const state: State = {
    budgetBytes,
    usedBytes: 0,
    usedBy: new Map(),
    lines: new Map(),
    order: createPlaceOrder(),
  };
  return {
    usedBytes: () => state.usedBytes,
    async hold(companyId, messageId) {
      if (hasRoom(state, companyId)) add(state, companyId, RESERVED_BYTES);
      else await untilStarted(state, companyId);
      let bytes = 0;
      try {
        const payload = await load(messageId);
        bytes = payload?.length ?? 0;
        return payload && { payload, release: giveBack.bind(null, state, companyId, bytes) };
      } finally {
        add(state, companyId, bytes);
        giveBack(state, companyId, RESERVED_BYTES);
      }
    },
  };
}

function hasRoom({ usedBytes, usedBy, budgetBytes }: State, companyId: string): boolean {
  return usedBytes < budgetBytes && (usedBy.get(companyId) ?? 0) < budgetBytes / 2;
}

function add(state: State, companyId: string, bytes: number): void {
  const { usedBy } = state;
  state.usedBytes += bytes;
  const ofCompany = (usedBy.get(companyId) ?? 0) + bytes;
  if (ofCompany === 0) usedBy.delete(companyId);
  else usedBy.set(companyId, ofCompany);
}

function giveBack(state: State, companyId: string, bytes: number): void {
  add(state, companyId, -bytes);
  startWaiting(state);
}

function startWaiting(state: State): void {
  const { order } = state;
  const passed: Line[] = [];
  while (state.usedBytes < state.budgetBytes) {
    const line = order.next();
    if (!line) break;
    if (hasRoom(state, line.companyId)) startNext(state, line);
    else passed.push(line);
  }
  for (const line of passed) order.add(line);
}

function startNext(state: State, line: Line): void {
  const { companyId, starts } = line;
  add(state, companyId, RESERVED_BYTES);
  starts.shift()?.();
  if (starts.size() > 0) state.order.add(line);
  else state.lines.delete(companyId);
}

function untilStarted({ lines, order }: State, companyId: string): Promise<void> {
  return new Promise((resolve) => {
    const line = lines.get(companyId) ?? { companyId, starts: createFifo() };
    line.starts.push(resolve);
    lines.set(companyId, line);
    order.add(line);
  });
}
