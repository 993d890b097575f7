import { createShares } from '@posthorn/platform/memory/shares.ts';
import type { Response } from 'express';
import { unavailable } from '../api-error.ts';
import type { Caller } from './route.ts';

/**
 * Counts the bytes that requests hold until their response is sent and their work has ended: bodies, what
 * is read for them, responses. Companies share the budget.
 */
export interface RequestMemory {
  /** Returns false and counts nothing if the company of this request may hold no more. */
  tryHold: (response: Response, bytes: number) => boolean;
  /** Counts bytes that are in memory already, even beyond the budget. */
  hold: (response: Response, bytes: number) => void;
  /** Counts the request until `work` ends too: it may go on after its response (see RequestDeadlines). */
  holdUntil: (response: Response, work: Promise<unknown>) => void;
  /** Counts what is about to be read. Throws ApiError 503 if the company may hold no more. */
  holdOrRefuse: (response: Response, bytes: number) => void;
  usedBytes: () => number;
}

/** Request, response, route and promises, estimated. A company may hold half: 8,192 requests at once in 64 MiB. */
export const REQUEST_BYTES = 4_096;

/**
 * What is read for one request counts at most as this part of the budget, so that there is room for the
 * largest one when nothing else is held.
 */
const LARGEST_PART = 1 / 4;

interface Held {
  companyId: string;
  bytes: number;
  /** The response and the work that still need it. */
  users: number;
}

/** What a request holds is released when its response is closed, complete or not, and its work has ended. */
export function createRequestMemory(budgetBytes: number): RequestMemory {
  const shares = createShares(budgetBytes);
  const heldBy = new WeakMap<Response, Held>();

  function begin(response: Response): Held {
    const held = { companyId: companyOf(response), bytes: 0, users: 1 };
    heldBy.set(response, held);
    response.once('close', () => {
      leave(held);
    });
    return held;
  }

  function leave(held: Held): void {
    held.users -= 1;
    if (held.users === 0) shares.remove(held.companyId, held.bytes);
  }

  /** Null when everything about the request has ended. */
  function heldFor(response: Response): Held | null {
    const held = heldBy.get(response);
    if (held) return held.users === 0 ? null : held;
    return response.closed ? null : begin(response);
  }

  function hold(response: Response, bytes: number): void {
    const held = bytes === 0 ? null : heldFor(response);
    if (!held) return;
    held.bytes += bytes;
    shares.add(held.companyId, bytes);
  }

  function tryHold(response: Response, bytes: number): boolean {
    if (!shares.hasRoom(companyOf(response), bytes)) return false;
    hold(response, bytes);
    return true;
  }

  return {
    tryHold,
    hold,
    holdUntil(response, work) {
      const held = heldFor(response);
      if (!held) return;
      held.users += 1;
      const end = (): void => {
        leave(held);
      };
      work.then(end, end);
    },
    holdOrRefuse(response, bytes) {
      const counted = Math.min(bytes, Math.floor(budgetBytes * LARGEST_PART));
      if (!tryHold(response, counted)) throw unavailable();
    },
    usedBytes: shares.used,
  };
}

function companyOf(response: Response): string {
  return (response.locals.caller as Caller).companyId;
}
