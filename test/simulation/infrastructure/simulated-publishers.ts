import { LEASE_MS, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type {
  KnownPublisher,
  PublisherStore,
} from '@posthorn/platform/mongo/messages/publishers.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** What the stores need of a process. */
type Requester = Pick<SimulatedProcess, 'request'>;

interface Publisher {
  heartbeatMs: number;
  watermark: string;
  stuckSinceMs: number | null;
  sweptTo?: string;
  isTakenOver?: boolean;
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
  const alive = (watermark: string, stuckMs: number | null) => ({
    heartbeatMs: nowMs(),
    watermark,
    stuckSinceMs: stuckMs === null ? null : nowMs() - stuckMs,
  });
  return {
    register: (id, watermark) =>
      request(process, `register ${id.slice(-4)}`, () => {
        known.set(id, { ...known.get(id), ...alive(watermark, null) });
      }),
    heartbeat: (id, watermark, stuckMs) =>
      request(process, `heartbeat of ${id.slice(-4)}`, () => {
        const publisher = known.get(id);
        if (!publisher || publisher.isTakenOver) return false;
        known.set(id, { ...publisher, ...alive(watermark, stuckMs) });
        return true;
      }),
    handOver: (id, watermark) =>
      request(process, `hand ${id.slice(-4)} over`, () => {
        known.set(id, { ...known.get(id), ...alive(watermark, null), isTakenOver: true });
      }),
    progressOf: (ids) =>
      request(process, 'read publishers', () => {
        const found = ids.flatMap((id): [string, Publisher][] => {
          const publisher = known.get(id);
          return publisher ? [[id, publisher]] : [];
        });
        return new Map(
          found.map(([id, { watermark, sweptTo = '' }]) => [id, { watermark, sweptTo }]),
        );
      }),
    list: () =>
      request(process, 'list publishers', () =>
        [...known].map(([id, publisher]) => toKnown(id, publisher, nowMs())),
      ),
    takeOver: (listed, unchanged) =>
      request(process, `take ${listed.id.slice(-4)} over`, () => {
        const publisher = known.get(listed.id);
        if (!publisher || publisher.isTakenOver) return false;
        const isSame =
          unchanged === 'heartbeat'
            ? publisher.heartbeatMs === listed.heartbeatAtMs
            : publisher.watermark === listed.watermark;
        if (isSame) publisher.isTakenOver = true;
        return isSame;
      }),
    markSwept: (id, sweptTo) =>
      request(process, `mark ${id.slice(-4)} as swept to ${sweptTo}`, () => {
        const publisher = known.get(id);
        if (publisher && sweptTo > (publisher.sweptTo ?? '')) publisher.sweptTo = sweptTo;
      }),
    forget: (id, silentMs) =>
      request(process, `forget ${id.slice(-4)}`, () => {
        if ((known.get(id)?.heartbeatMs ?? Infinity) < nowMs() - silentMs) known.delete(id);
      }),
  };
}

function toKnown(id: string, publisher: Publisher, nowMs: number): KnownPublisher {
  const { watermark, sweptTo = '', heartbeatMs, stuckSinceMs, isTakenOver = false } = publisher;
  return {
    id,
    watermark,
    sweptTo,
    isTakenOver,
    heartbeatAtMs: heartbeatMs,
    silentMs: nowMs - heartbeatMs,
    stuckMs: stuckSinceMs === null ? null : nowMs - stuckSinceMs,
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
