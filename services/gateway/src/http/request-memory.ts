import { createShares, type Shares } from '@posthorn/platform/memory/memory-budgets.ts';
import type { Response } from 'express';
import { overloaded } from '../api-error.ts';
import { addressKey } from '../limits/client-address.ts';
import type { Caller } from '../keys/rights.ts';

/**
 * Counts the bytes that requests hold until their response is sent and their work has ended: bodies, what
 * is read for them, responses. Owners share the budget: companies, or client addresses before the company is known.
 */
export interface RequestMemory {
  /** Returns false and counts nothing if the owner of this request may hold no more. */
  tryReserve: (response: Response, bytes: number) => boolean;
  /** Counts bytes that are in memory already, even beyond the budget. */
  reserve: (response: Response, bytes: number) => void;
  /** Counts the request until `work` ends too: it may go on after its response (see RequestDeadlines). */
  keepUntil: (response: Response, work: Promise<unknown>) => void;
  /** Counts bytes that are about to be read. Throws ApiError 503 if the owner may hold no more. */
  reserveOrRefuse: (response: Response, bytes: number) => void;
  /** Counts the bytes until `work` ends, and no longer. Throws ApiError 503 if the owner may hold no more. */
  countWhile: <Result>(
    response: Response,
    bytes: number,
    work: () => Promise<Result>,
  ) => Promise<Result>;
  usedBytes: () => number;
}

/** Request, response, route and promises, estimated. A company may hold half: 8,192 requests at once in 64 MiB. */
export const REQUEST_BYTES = 4_096;

/**
 * The largest part of the budget that a read for one request counts as, so that there is room for the largest read when
 * nothing else is held.
 */
const LARGEST_PART = 1 / 4;

interface Reservation {
  owner: string;
  bytes: number;
  /** The response and the work that still need it. */
  users: number;
}

/** The memory of a request is released when its response is closed, complete or not, and its work has ended. */
export function createRequestMemory(budgetBytes: number, ownerOf = companyOf): RequestMemory {
  const shares = createShares(budgetBytes);
  const { open, release } = createReservations(shares, ownerOf);

  function reserve(response: Response, bytes: number): void {
    const reservation = bytes === 0 ? null : open(response);
    if (!reservation) return;
    reservation.bytes += bytes;
    shares.add(reservation.owner, bytes);
  }

  function tryReserve(response: Response, bytes: number): boolean {
    if (!shares.hasRoom(ownerOf(response), bytes)) return false;
    reserve(response, bytes);
    return true;
  }

  return {
    tryReserve,
    reserve,
    keepUntil(response, work) {
      const reservation = open(response);
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
    async countWhile(response, bytes, work) {
      const owner = ownerOf(response);
      if (!shares.hasRoom(owner, bytes)) throw overloaded();
      shares.add(owner, bytes);
      try {
        return await work();
      } finally {
        shares.remove(owner, bytes);
      }
    },
    usedBytes: shares.used,
  };
}

interface Reservations {
  /** Null when everything about the request has ended. */
  open: (response: Response) => Reservation | null;
  release: (reservation: Reservation) => void;
}

function createReservations(shares: Shares, ownerOf: (response: Response) => string): Reservations {
  const reservations = new WeakMap<Response, Reservation>();

  function begin(response: Response): Reservation {
    const reservation = { owner: ownerOf(response), bytes: 0, users: 1 };
    reservations.set(response, reservation);
    response.once('close', () => {
      release(reservation);
    });
    return reservation;
  }

  function release(reservation: Reservation): void {
    reservation.users -= 1;
    if (reservation.users === 0) shares.remove(reservation.owner, reservation.bytes);
  }

  return {
    open(response) {
      const reservation = reservations.get(response);
      if (reservation) return reservation.users === 0 ? null : reservation;
      return response.closed ? null : begin(response);
    },
    release,
  };
}

/** The owner before authentication: the client's address. */
export const addressOf = ({ req }: Response): string => addressKey(req.ip);

function companyOf(response: Response): string {
  return (response.locals.caller as Caller).companyId;
}
