import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { World } from '../run/world.ts';

interface Publisher {
  heartbeatMs: number;
  watermark: string;
  behindSinceMs: number | null;
  sweptTo?: string;
}

/** The two collections whose rules rest on the database's own clock. */
export interface SimulatedPublishers {
  /** True while a sweeper may find something to do. */
  hasAny: () => boolean;
  reachedBy: (process: SimulatedProcess) => { publishers: PublisherStore; leases: LeaseStore };
}

export function createSimulatedPublishers({ time }: World): SimulatedPublishers {
  const known = new Map<string, Publisher>();
  const leases = new Map<string, { holder: string; expiresMs: number }>();
  return {
    hasAny: () => known.size > 0,
    reachedBy: (process) => ({
      publishers: publishersOf(process, known, time.nowMs),
      leases: leasesOf(process, leases, time.nowMs),
    }),
  };
}

function publishersOf(
  process: SimulatedProcess,
  known: Map<string, Publisher>,
  nowMs: () => number,
): PublisherStore {
  return {
    heartbeat: (id, watermark, behindMs) =>
      act(process, `beat of ${id.slice(-4)}`, () => {
        const behindSinceMs = behindMs === null ? null : nowMs() - behindMs;
        known.set(id, { ...known.get(id), heartbeatMs: nowMs(), watermark, behindSinceMs });
      }),
    findToSweep: ({ staleMs, behindMs }) =>
      act(process, 'find publishers to sweep', () =>
        [...known]
          .filter(
            ([, { heartbeatMs, behindSinceMs }]) =>
              heartbeatMs < nowMs() - staleMs || (behindSinceMs ?? Infinity) < nowMs() - behindMs,
          )
          .map(([_id, { watermark, sweptTo }]) => ({
            _id,
            watermark,
            ...(sweptTo && { sweptTo }),
          })),
      ),
    markSwept: (id, sweptTo) =>
      act(process, `swept ${id.slice(-4)} to ${sweptTo}`, () => {
        const publisher = known.get(id);
        if (publisher) publisher.sweptTo = sweptTo;
      }),
    forget: (id, silentMs) =>
      act(process, `forget ${id.slice(-4)}`, () => {
        if ((known.get(id)?.heartbeatMs ?? Infinity) <= nowMs() - silentMs) known.delete(id);
      }),
  };
}

function leasesOf(
  process: SimulatedProcess,
  leases: Map<string, { holder: string; expiresMs: number }>,
  nowMs: () => number,
): LeaseStore {
  return {
    hold: (name, holder, ttlMs) =>
      act(process, `hold lease ${name}`, () => {
        const held = leases.get(name);
        if (held && held.holder !== holder && held.expiresMs >= nowMs()) return false;
        leases.set(name, { holder, expiresMs: nowMs() + ttlMs });
        return true;
      }),
    release: (name, holder) =>
      act(process, `release lease ${name}`, () => {
        if (leases.get(name)?.holder === holder) leases.delete(name);
      }),
  };
}

function act<T>(process: SimulatedProcess, what: string, effect: () => T): Promise<T> {
  const lost = (): Error => new Error('nobody answered');
  let result: T;
  return process.request({ what, parts: [() => (result = effect())], answer: () => result, lost });
}
