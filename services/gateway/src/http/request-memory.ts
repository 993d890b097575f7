import { createShares } from '@posthorn/platform/memory/shares.ts';
import type { Response } from 'express';
import type { Caller } from './route.ts';

/** Counts the bytes of bodies and responses that requests hold until their response is sent. Companies share the budget. */
export interface RequestMemory {
  /** Returns false and counts nothing if the company of this request may hold no more. */
  tryHold: (response: Response, bytes: number) => boolean;
  /** Counts bytes that are in memory already, even beyond the budget. */
  hold: (response: Response, bytes: number) => void;
  usedBytes: () => number;
}

interface Held {
  companyId: string;
  bytes: number;
}

/** What a request holds is released when its response closes, complete or not. */
export function createRequestMemory(budgetBytes: number): RequestMemory {
  const shares = createShares(budgetBytes);
  const heldBy = new WeakMap<Response, Held>();

  function begin(response: Response): Held {
    const held = { companyId: companyOf(response), bytes: 0 };
    heldBy.set(response, held);
    response.once('close', () => {
      shares.remove(held.companyId, held.bytes);
    });
    return held;
  }

  function hold(response: Response, bytes: number): void {
    if (response.closed || bytes === 0) return;
    const held = heldBy.get(response) ?? begin(response);
    held.bytes += bytes;
    shares.add(held.companyId, bytes);
  }

  return {
    tryHold(response, bytes) {
      if (!shares.hasRoom(companyOf(response), bytes)) return false;
      hold(response, bytes);
      return true;
    },
    hold,
    usedBytes: shares.used,
  };
}

function companyOf(response: Response): string {
  return (response.locals.caller as Caller).companyId;
}
