import type { mongo } from 'mongoose';
import { Gauge, type Registry } from 'prom-client';
import {
  createStoreMetrics,
  type OperationOf,
  type StoreMetrics,
} from '../../service/stores/store-metrics.ts';

const OPERATIONS = new Set<string>([
  'find',
  'getMore',
  'aggregate',
  'insert',
  'update',
  'delete',
  'findAndModify',
] satisfies OperationOf<'mongodb'>[]);

type Select = (...args: unknown[]) => Promise<unknown>;

/** A client that is connected has a topology. The driver declares it for its own use only. */
type Client = Pick<mongo.MongoClient, 'on'> & { topology?: unknown };

/**
 * Times the commands of a client, which must have been created with `monitorCommands` and be connected, and counts its
 * connections.
 */
export function watchClient(registry: Registry, client: Client, maxPoolSize: number): void {
  const metrics = createStoreMetrics(registry, 'mongodb');
  watchCommands(client, metrics);
  watchCheckOuts(client, metrics);
  watchSelections(client, metrics);
  watchPool(registry, client, maxPoolSize);
}

function watchCommands(client: Client, metrics: StoreMetrics<'mongodb'>): void {
  client.on('commandSucceeded', ({ commandName, duration, reply }) => {
    const operation = operationOf(commandName);
    // A write that no majority has confirmed is answered like a success.
    if (hasWriteConcernError(reply)) metrics.failed(operation, duration);
    else metrics.succeeded(operation, duration);
  });
  client.on('commandFailed', ({ commandName, duration }) => {
    metrics.failed(operationOf(commandName), duration);
  });
}

/** An operation that gets no connection sends no command. */
function watchCheckOuts(client: Client, metrics: StoreMetrics<'mongodb'>): void {
  client.on('connectionCheckOutFailed', ({ reason, durationMS }) => {
    // The process stops.
    if (reason !== 'poolClosed') metrics.failed('checkOut', durationMS);
  });
}

/** The driver has no event for an operation that found no server, so this takes its place before the method. */
function watchSelections(client: Client, metrics: StoreMetrics<'mongodb'>): void {
  const topology = client.topology as { selectServer: Select } | undefined;
  if (!topology) return;
  const select = topology.selectServer.bind(topology);
  topology.selectServer = (...args) => {
    const startedMs = performance.now();
    const selected = select(...args);
    selected.catch(() => {
      metrics.failed('selectServer', performance.now() - startedMs);
    });
    return selected;
  };
}

function operationOf(commandName: string): OperationOf<'mongodb'> {
  return OPERATIONS.has(commandName) ? (commandName as OperationOf<'mongodb'>) : 'other';
}

function hasWriteConcernError(reply: unknown): boolean {
  return (reply as { writeConcernError?: unknown } | null)?.writeConcernError !== undefined;
}

interface PoolEvent {
  address: string;
  connectionId: number | '<monitor>';
}

/** The first connections are open before anybody can listen: they are counted when they are first used. */
function watchPool(registry: Registry, client: Client, maxPoolSize: number): void {
  const open = new Set<string>();
  const inUse = new Set<string>();
  const keyOf = ({ address, connectionId }: PoolEvent): string => `${address} ${connectionId}`;
  client.on('connectionCreated', (event) => open.add(keyOf(event)));
  client.on('connectionCheckedOut', (event) => {
    open.add(keyOf(event));
    inUse.add(keyOf(event));
  });
  client.on('connectionCheckedIn', (event) => inUse.delete(keyOf(event)));
  client.on('connectionClosed', (event) => {
    open.delete(keyOf(event));
    inUse.delete(keyOf(event));
  });
  new Gauge({
    name: 'posthorn_mongodb_connections',
    help: 'Connections to MongoDB: open, in use by an operation, and the most that may be open to each server (limit).',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      this.set({ state: 'open' }, open.size);
      this.set({ state: 'in_use' }, inUse.size);
      this.set({ state: 'limit' }, maxPoolSize);
    },
  });
}
