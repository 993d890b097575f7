import { createShares } from '@posthorn/platform/memory/shares.ts';
import type { Response } from 'express';
import { overloaded } from '../api-error.ts';
import type { Caller } from './route.ts';

/**
 * Counts the bytes that requests hold until their response is sent and their work has ended: bodies, what
 * is read for them, responses. Companies share the budget.
 */
export interface RequestMemory {
  /** Returns false and counts nothing if the company of this request may hold no more. */
  tryReserve: (response: Response, bytes: number) => boolean;
  /** Counts bytes that are in memory already, even beyond the budget. */
  reserve: (response: Response, bytes: number) => void;
  /** Counts the request until `work` ends too: it may go on after its response (see RequestDeadlines). */
  keepUntil: (response: Response, work: Promise<unknown>) => void;
  /** Counts what is about to be read. Throws ApiError 503 if the company may hold no more. */
  reserveOrRefuse: (response: Response, bytes: number) => void;
  usedBytes: () => number;
}

/** Request, response, route and promises, estimated. A company may hold half: 8,192 requests at once in 64 MiB. */
export const REQUEST_BYTES = 4_096;

/**
 * What is read for one request counts at most as this part of the budget, so that there is room for the
 * largest one when nothing else is held.
 */
const LARGEST_PART = 1 / 4;

interface Reservation {
  companyId: string;
  bytes: number;
  /** The response and the work that still need it. */
  users: number;
}

/** What a request holds is released when its response is closed, complete or not, and its work has ended. */
export function createRequestMemory(budgetBytes: number): RequestMemory {
  const shares = createShares(budgetBytes);
  const reservations = new WeakMap<Response, Reservation>();

  function begin(response: Response): Reservation {
    const reservation = { companyId: companyOf(response), bytes: 0, users: 1 };
    reservations.set(response, reservation);
    response.once('close', () => {
      release(reservation);
    });
    return reservation;
  }

  function release(reservation: Reservation): void {
    reservation.users -= 1;
    if (reservation.users === 0) shares.remove(reservation.companyId, reservation.bytes);
  }

  /** Null when everything about the request has ended. */
  function openReservation(response: Response): Reservation | null {
    const reservation = reservations.get(response);
    if (reservation) return reservation.users === 0 ? null : reservation;
    return response.closed ? null : begin(response);
  }

  function reserve(response: Response, bytes: number): void {
    const reservation = bytes === 0 ? null : openReservation(response);
    if (!reservation) return;
    reservation.bytes += bytes;
    shares.add(reservation.companyId, bytes);
  }

  function tryReserve(response: Response, bytes: number): boolean {
    if (!shares.hasRoom(companyOf(response), bytes)) return false;
    reserve(response, bytes);
    return true;
  }

  return {
    tryReserve,
    reserve,
    keepUntil(response, work) {
      const reservation = openReservation(response);
      if (!reservation) return;
      reservation.users += 1;
      const end = (): void => {
        release(reservation);
      };
      work.then(end, end);
    },
    reserveOrRefuse(response, bytes) {
      const counted = Math.min(bytes, Math.floor(budgetBytes * LARGEST_PART));
      if (!tryReserve(response, counted)) throw overloaded();
    },
    usedBytes: shares.used,
  };
}

function companyOf(response: Response): string {
  return (response.locals.caller as Caller).companyId;
}
