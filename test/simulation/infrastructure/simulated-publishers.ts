import { LEASE_MS, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** What the stores need of a process. */
type Requester = Pick<SimulatedProcess, 'request'>;

interface Publisher {
  heartbeatMs: number;
  watermark: string;
  behindSinceMs: number | null;
  sweptTo?: string;
}

/** The stores of publishers and leases, whose rules use the clock of the database. */
export interface SimulatedPublishers {
  /** Returns whether there are publishers that a sweep may find. */
  hasAny: () => boolean;
  connectedTo: (process: Requester) => { publishers: PublisherStore; leases: LeaseStore };
}

export function createSimulatedPublishers({ nowMs }: { nowMs: () => number }): SimulatedPublishers {
  const known = new Map<string, Publisher>();
  const leases = new Map<string, { holder: string; expiresMs: number }>();
  return {
    hasAny: () => known.size > 0,
    connectedTo: (process) => ({
      publishers: publishersOf(process, known, nowMs),
      leases: leasesOf(process, leases, nowMs),
    }),
  };
}

function publishersOf(
  process: Requester,
  known: Map<string, Publisher>,
  nowMs: () => number,
): PublisherStore {
  return {
    heartbeat: (id, watermark, behindMs) =>
      request(process, `heartbeat of ${id.slice(-4)}`, () => {
        const behindSinceMs = behindMs === null ? null : nowMs() - behindMs;
        known.set(id, { ...known.get(id), heartbeatMs: nowMs(), watermark, behindSinceMs });
      }),
    findToSweep: ({ staleMs, behindMs }) =>
      request(process, 'find publishers to sweep', () =>
        [...known]
          .filter(
            ([, { heartbeatMs, behindSinceMs }]) =>
              heartbeatMs < nowMs() - staleMs || (behindSinceMs ?? Infinity) < nowMs() - behindMs,
          )
          .map(([id, { watermark, sweptTo = '' }]) => ({ id, watermark, sweptTo })),
      ),
    markSwept: (id, sweptTo) =>
      request(process, `mark ${id.slice(-4)} as swept to ${sweptTo}`, () => {
        const publisher = known.get(id);
        if (publisher) publisher.sweptTo = sweptTo;
      }),
    forget: (id, silentMs) =>
      request(process, `forget ${id.slice(-4)}`, () => {
        if ((known.get(id)?.heartbeatMs ?? Infinity) < nowMs() - silentMs) known.delete(id);
      }),
  };
}

function leasesOf(
  process: Requester,
  leases: Map<string, { holder: string; expiresMs: number }>,
  nowMs: () => number,
): LeaseStore {
  return {
    hold: (name, holder) =>
      request(process, `hold lease ${name}`, () => {
        const held = leases.get(name);
        if (held && held.holder !== holder && held.expiresMs >= nowMs()) return false;
        leases.set(name, { holder, expiresMs: nowMs() + LEASE_MS });
        return true;
      }),
    release: (name, holder) =>
      request(process, `release lease ${name}`, () => {
        if (leases.get(name)?.holder === holder) leases.delete(name);
      }),
  };
}

function request<T>(process: Requester, what: string, effect: () => T): Promise<T> {
  const noResponse = (): Error => new Error('no response');
  let result: T;
  return process.request({
    what,
    effects: [() => (result = effect())],
    respond: () => result,
    noResponse,
  });
}
