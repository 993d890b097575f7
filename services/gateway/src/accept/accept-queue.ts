import { charsOfMessage } from '@posthorn/domain/message.ts';
import { createShares } from '@posthorn/platform/memory/memory-budgets.ts';
import { MS_PER_RECORD } from '../outbox/publish-budget.ts';
import type { NewMessage, ResolvedRequest } from './build-message.ts';

/** Bounds the requests that wait for the store. */
export interface AcceptQueueLimit {
  /**
   * Returns the function that releases the reservation. Returns null, and reserves nothing, when the
   * company already holds its share.
   */
  tryReserve: (companyId: string, bytes: number) => (() => void) | null;
  /** False when such a reservation would be refused now. */
  hasRoom: (companyId: string, bytes: number) => boolean;
  /** Bytes of all reservations. */
  usedBytes: () => number;
}

interface AcceptQueueBounds {
  requests: number;
  bytes: number;
}

/** Companies share both the number of requests and the bytes (see createShares). */
export function createAcceptQueueLimit(bounds: AcceptQueueBounds): AcceptQueueLimit {
  const requests = createShares(bounds.requests);
  const memory = createShares(bounds.bytes);
  const hasRoom = (companyId: string, bytes: number): boolean =>
    requests.hasRoom(companyId, 1) && memory.hasRoom(companyId, bytes);
  return {
    hasRoom,
    tryReserve(companyId, bytes) {
      if (!hasRoom(companyId, bytes)) return null;
      requests.add(companyId, 1);
      memory.add(companyId, bytes);
      return () => {
        requests.remove(companyId, 1);
        memory.remove(companyId, bytes);
      };
    },
    usedBytes: memory.used,
  };
}

const IDS_PER_UNIT = 100;
const CHARS_PER_UNIT = 16_384;

/**
 * Returns the share of a batch, and of its company's turns, that a request takes. An ordinary request
 * costs 1; each 100 ids that are stored with it and each 16 KiB of payload cost 1 more. So a batch of
 * 200 holds 200 ordinary messages, two to 10,000 webhooks each, one to 10,000 disabled ones, whose ids are stored twice,
 * or 12 of 256 KiB: about 3 MiB. To encode 20,000 ids takes 3 ms.
 */
export function batchCostOf({ request, targets, disabledTargets }: ResolvedRequest): number {
  const forIds = Math.floor((targets.length + disabledTargets.size) / IDS_PER_UNIT);
  return 1 + forIds + Math.floor(charsOf(request) / CHARS_PER_UNIT);
}

const WIDE_WEBHOOKS = 100;
/** Of a disabled webhook: its id is stored twice, and its delivery is part of the response. */
const MS_PER_STATED = 0.005;

/**
 * Returns how long a message to many webhooks keeps the process busy, in milliseconds; 0 for any other one. One to 10,000
 * webhooks is a quarter of a second, and a twentieth of one when they are disabled.
 */
export function fanOutMsOf({ targets, disabledTargets }: ResolvedRequest): number {
  if (targets.length < WIDE_WEBHOOKS) return 0;
  const records = targets.length - disabledTargets.size;
  return records * MS_PER_RECORD + disabledTargets.size * MS_PER_STATED;
}

/** Request, response, promises and ids. */
const REQUEST_BYTES = 4_096;
/** The parsed text, and what the driver writes. The body itself is counted where it is read. */
const PAYLOAD_COPIES = 2;
/** The id in the message, and the delivery in the response, as an object and as text. */
const WEBHOOK_BYTES = 300;

const charsOf = ({ payload, given }: NewMessage): number => charsOfMessage({ payload, ...given });

/** Estimates the bytes that a request holds in memory until it is answered. */
export function memoryBytesOf({ request, targets }: ResolvedRequest): number {
  return memoryBytesOfBody(charsOf(request)) + targets.length * WEBHOOK_BYTES;
}

/** What such a request holds without its targets, from the length of its body or payload. */
export function memoryBytesOfBody(length: number): number {
  return REQUEST_BYTES + length * PAYLOAD_COPIES;
}
