import { readPatiently, type RedisCommand, sendAll } from './commands.ts';
import type { RedisClient } from './connect.ts';

/**
 * The open circuits: those of a partition for the dispatcher that takes it over, those of a company for the gateway. A
 * circuit's time is when its next probe may be made, in milliseconds since 1970.
 */
export interface OpenCircuits {
  /**
   * Reads the open circuits of these partitions, and removes those that have ended. Rejects when none of the partitions
   * can be read.
   */
  takeOver: (partitions: readonly number[], limits: TakeOverLimits) => Promise<TakenOver>;
  /** Returns the open circuits of the company, MAX_LISTED at most. Rejects without Redis. */
  list: (companyId: string) => Promise<OpenCircuit[]>;
  /** Null when the circuit is closed. Rejects without Redis. */
  read: (companyId: string, webhookId: string) => Promise<number | null>;
  /** Stores an open circuit without waiting for Redis; while Redis is away nothing is stored. */
  opened: (of: CircuitOwner, times: CircuitTimes) => void;
  /** Removes a circuit without waiting for Redis. */
  closed: (of: CircuitOwner) => void;
}

export interface CircuitOwner {
  webhookId: string;
  companyId: string;
  /** The partition of its records. */
  partition: number;
}

export interface CircuitTimes {
  probeAtMs: number;
  /** When it opened first, without a success since. */
  sinceMs: number;
}

export interface InheritedCircuit extends CircuitTimes {
  companyId: string;
  partition: number;
}

interface TakeOverLimits {
  /** Circuits beyond this many are left out. */
  most: number;
  /** No read begins later. Each that has begun ends within seconds (`readPatiently` in commands.ts). */
  withinMs: number;
}

interface TakenOver {
  /** By webhook id. */
  circuits: Map<string, InheritedCircuit>;
  /** The partitions that were read. The circuits of the others are unknown. */
  read: number[];
}

export interface OpenCircuit extends CircuitTimes {
  webhookId: string;
}

/** Beyond this many of one company, the others are neither shown nor counted. */
export const MAX_LISTED = 10_000;
/** No record is deferred by an open circuit for longer. */
const FORGET_AFTER_MS = 12 * 3_600_000;
/** A hash to which nothing was written for this time has nothing current. */
const EXPIRE_AFTER_MS = FORGET_AFTER_MS + 3_600_000;
/** Partitions that are read at once: a dispatcher that starts alone may have thousands. */
const READ_AT_ONCE = 16;
const SCAN_COUNT = 1_000;

/** Uses two hashes for each circuit, which expire: by partition a new owner reads its own only, by company a gateway. */
export function createOpenCircuits(
  redis: RedisClient,
  prefix: string,
  nowMs: () => number,
): OpenCircuits {
  const ofPartition = (partition: number): string => `${prefix}circuits-of-partition:${partition}`;
  const ofCompany = (companyId: string): string => `${prefix}circuits-of-company:${companyId}`;
  const isCurrent = ({ probeAtMs }: CircuitTimes): boolean => probeAtMs + FORGET_AFTER_MS > nowMs();

  function sendUnawaited(
    { partition, companyId }: CircuitOwner,
    commandsFor: (key: string) => RedisCommand[],
  ): void {
    const keys = [ofPartition(partition), ofCompany(companyId)];
    void sendAll(redis, keys.flatMap(commandsFor)).catch(() => undefined);
  }

  function remove(of: CircuitOwner): void {
    sendUnawaited(of, (key) => [['hdel', key, of.webhookId]]);
  }

  async function readPartition(partition: number): Promise<[string, InheritedCircuit][]> {
    const stored = await readPatiently(redis, 'hgetall', [ofPartition(partition)]);
    const circuits: [string, InheritedCircuit][] = [];
    for (const [webhookId, text] of Object.entries(stored as Record<string, string>)) {
      const circuit = parse(text);
      if (!circuit) continue;
      if (isCurrent(circuit)) circuits.push([webhookId, { ...circuit, partition }]);
      else remove({ webhookId, companyId: circuit.companyId, partition });
    }
    return circuits;
  }

  return {
    takeOver: (partitions, limits) => takeOver(readPartition, partitions, limits),
    list: (companyId) => list(redis, ofCompany(companyId), isCurrent),
    async read(companyId, webhookId) {
      const circuit = parse((await redis.hget(ofCompany(companyId), webhookId)) ?? '');
      return circuit && isCurrent(circuit) ? circuit.probeAtMs : null;
    },
    opened(of, { probeAtMs, sinceMs }) {
      const text = [probeAtMs, sinceMs, of.companyId].join(' ');
      sendUnawaited(of, (key) => [
        ['hset', key, of.webhookId, text],
        ['pexpire', key, EXPIRE_AFTER_MS],
      ]);
    },
    closed: remove,
  };
}

async function takeOver(
  readPartition: (partition: number) => Promise<[string, InheritedCircuit][]>,
  partitions: readonly number[],
  { most, withinMs }: TakeOverLimits,
): Promise<TakenOver> {
  const begunMs = performance.now();
  const circuits = new Map<string, InheritedCircuit>();
  const read: number[] = [];
  const failures: unknown[] = [];
  for (let from = 0; from < partitions.length; from += READ_AT_ONCE) {
    // In a cluster with a node that hangs, each page waits for it.
    if (from > 0 && performance.now() - begunMs >= withinMs) break;
    const page = partitions.slice(from, from + READ_AT_ONCE).map(async (partition) => {
      const found = await readPartition(partition);
      for (const [id, each] of found) if (circuits.size < most) circuits.set(id, each);
      read.push(partition);
    });
    for (const result of await Promise.allSettled(page))
      if (result.status === 'rejected') failures.push(result.reason);
  }
  // In a cluster, those of a node that is away are unknown, and the others are of use.
  if (failures.length > 0 && read.length === 0) throw failures[0];
  return { circuits, read };
}

async function list(
  redis: RedisClient,
  key: string,
  isCurrent: (circuit: CircuitTimes) => boolean,
): Promise<OpenCircuit[]> {
  const found = new Map<string, OpenCircuit>();
  let cursor = '0';
  do {
    const [next, fields] = await redis.hscan(key, cursor, 'COUNT', SCAN_COUNT);
    cursor = next;
    for (let n = 0; n + 1 < fields.length; n += 2) {
      const [webhookId = '', text = ''] = fields.slice(n, n + 2);
      const circuit = parse(text);
      if (!circuit || !isCurrent(circuit)) continue;
      const { probeAtMs, sinceMs } = circuit;
      // A scan may return a field twice.
      found.set(webhookId, { webhookId, probeAtMs, sinceMs });
    }
  } while (cursor !== '0' && found.size < MAX_LISTED);
  return [...found.values()].slice(0, MAX_LISTED);
}

const STORED = /^(\d{1,15}) (\d{1,15}) (\S+)$/;

/** Returns null for text that no dispatcher has stored. */
function parse(text: string): (CircuitTimes & { companyId: string }) | null {
  const [, probeAt, since, companyId] = STORED.exec(text) ?? [];
  if (companyId === undefined) return null;
  return { probeAtMs: Number(probeAt), sinceMs: Number(since), companyId };
}
