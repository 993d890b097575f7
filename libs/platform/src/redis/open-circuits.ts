import {
  readPatiently,
  type RedisCommand,
  sendAll,
  type TakenOver,
  type TakeOverLimits,
  takeOverPartitions,
} from './commands.ts';
import type { RedisClient } from './connect.ts';

/**
 * The open circuits: those of a partition for the dispatcher that takes it over, those of a company for the gateway. A
 * circuit's time is when its next probe may be made, in milliseconds since 1970.
 */
export interface OpenCircuits {
  /**
   * Reads the open circuits of these partitions by webhook id, and removes those that have ended. Rejects when none of
   * the partitions can be read.
   */
  takeOver: (
    partitions: readonly number[],
    limits: TakeOverLimits,
  ) => Promise<TakenOver<InheritedCircuit>>;
  /** Returns the open circuits of the company, MAX_LISTED at most. Rejects without Redis. */
  list: (companyId: string) => Promise<OpenCircuit[]>;
  /** Null when the circuit is closed; a time in the past means that the next attempt is its probe. Rejects without Redis. */
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

export interface OpenCircuit extends CircuitTimes {
  webhookId: string;
}

/** Beyond this many of one company, the others are neither shown nor counted. */
export const MAX_LISTED = 10_000;
/** No record is deferred by an open circuit for longer. */
const FORGET_AFTER_MS = 12 * 3_600_000;
/** A hash to which nothing was written for this time has nothing current. */
const EXPIRE_AFTER_MS = FORGET_AFTER_MS + 3_600_000;
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
    takeOver: (partitions, limits) => takeOverPartitions(readPartition, partitions, limits),
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
