import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requiredAt } from '@posthorn/domain/required.ts';
import { createChildren } from '../../../tools/local-stack/processes/children.ts';
import { eventually } from '../time/eventually.ts';
import {
  CLUSTER_PASSWORD,
  startClusterNode,
  writeClusterTls,
  type ClusterNode,
} from './redis-cluster-node.ts';

/** Of every Redis Cluster. */
const SLOTS = 16_384;
const PRIMARIES = 3;

export interface RedisCluster {
  /** Settings of a process that uses it. */
  env: Record<'REDIS_URL' | 'REDIS_TLS_CA_FILE' | 'REDIS_CLUSTER_NODES', string>;
  /** Starts a replica of a primary, which takes over when that one is lost. */
  addReplica: (primary: ClusterNode) => Promise<ClusterNode>;
  /** From now on, a node that is away for a second is lost, and its replica takes over from it. */
  noticeLosses: () => Promise<void>;
  /** Returns the primary that has the slot of the key. */
  ownerOf: (key: string) => Promise<ClusterNode>;
  /** Lets the next primary answer for the key, unless it exists: its slot stays between the two. */
  beginToMoveSlotOf: (key: string) => Promise<void>;
  /** Moves the slot of the key, with the key, to the next primary. */
  moveSlotOf: (key: string) => Promise<void>;
  stop: () => Promise<void>;
}

/** Starts three primaries with a third of the slots each, with TLS and a password. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const dir = mkdtempSync(join(tmpdir(), 'posthorn-redis-cluster-'));
  const tls = writeClusterTls(dir);
  const children = createChildren(dir);
  const nodes: ClusterNode[] = [];
  const start = async (): Promise<ClusterNode> => {
    const node = await startClusterNode(dir, tls, children);
    nodes.push(node);
    return node;
  };
  const primaries = await Promise.all(Array.from({ length: PRIMARIES }, start));
  await formCluster(primaries);
  return {
    env: {
      REDIS_URL: `rediss://:${CLUSTER_PASSWORD}@unused`,
      REDIS_TLS_CA_FILE: tls.certFile,
      REDIS_CLUSTER_NODES: primaries.map(({ port }) => `localhost:${port}`).join(),
    },
    addReplica: async (primary) => addReplica(await start(), primary),
    noticeLosses: () => noticeLosses(nodes),
    ownerOf: (key) => ownerOf(primaries, key),
    beginToMoveSlotOf: async (key) => void (await beginToMoveSlotOf(primaries, key)),
    moveSlotOf: (key) => moveSlotOf(primaries, key),
    async stop() {
      await Promise.all(nodes.map(({ kill }) => kill()));
      await children.stopAll();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function formCluster(primaries: readonly ClusterNode[]): Promise<void> {
  const first = requiredAt(primaries, 0, 'primary');
  for (const [index, { redis }] of primaries.entries()) {
    const [from, to] = [index, index + 1].map((n) => Math.floor((n * SLOTS) / PRIMARIES));
    await redis.cluster('SET-CONFIG-EPOCH', index + 1);
    await redis.call('CLUSTER', 'ADDSLOTSRANGE', Number(from), Number(to) - 1);
    await meet(first, { redis });
  }
  await Promise.all(primaries.map((node) => untilItKnows(node, PRIMARIES)));
}

async function meet(known: ClusterNode, { redis }: Pick<ClusterNode, 'redis'>): Promise<void> {
  await redis.call('CLUSTER', 'MEET', '127.0.0.1', known.port, known.busPort);
}

/** Until the node counts so many nodes, and all slots as served. */
async function untilItKnows({ redis, port }: ClusterNode, nodes: number): Promise<void> {
  await eventually(`a cluster as node ${port} sees it`, async () => {
    const info = await redis.cluster('INFO');
    const isComplete = info.includes(`cluster_slots_ok:${SLOTS}`);
    return (
      isComplete &&
      info.includes('cluster_state:ok') &&
      info.includes(`cluster_known_nodes:${nodes}\r`)
    );
  });
}

async function addReplica(replica: ClusterNode, primary: ClusterNode): Promise<ClusterNode> {
  await meet(primary, replica);
  await untilItKnows(replica, PRIMARIES + 1);
  await replica.redis.cluster('REPLICATE', primary.id);
  await eventually('a replica in step', async () => {
    return (await replica.redis.info('replication')).includes('master_link_status:up');
  });
  return replica;
}

async function noticeLosses(nodes: readonly ClusterNode[]): Promise<void> {
  const running = nodes.filter(({ redis }) => redis.status === 'ready');
  await Promise.all(running.map(({ redis }) => redis.config('SET', 'cluster-node-timeout', 1_000)));
}

async function ownerOf(primaries: readonly ClusterNode[], key: string): Promise<ClusterNode> {
  const { redis } = requiredAt(primaries, 0, 'primary');
  const slot = await redis.cluster('KEYSLOT', key);
  const ranges = await redis.cluster('SLOTS');
  const [, , owner] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [];
  const index = primaries.findIndex(({ port }) => port === owner?.[1]);
  return requiredAt(primaries, index, 'owner of the slot');
}

interface SlotMove {
  slot: number;
  from: ClusterNode;
  to: ClusterNode;
}

async function beginToMoveSlotOf(
  primaries: readonly ClusterNode[],
  key: string,
): Promise<SlotMove> {
  const from = await ownerOf(primaries, key);
  const to = requiredAt(primaries, (primaries.indexOf(from) + 1) % PRIMARIES, 'primary');
  const slot = await from.redis.cluster('KEYSLOT', key);
  await to.redis.cluster('SETSLOT', slot, 'IMPORTING', from.id);
  await from.redis.cluster('SETSLOT', slot, 'MIGRATING', to.id);
  return { slot, from, to };
}

async function moveSlotOf(primaries: readonly ClusterNode[], key: string): Promise<void> {
  const { slot, from, to } = await beginToMoveSlotOf(primaries, key);
  const login = ['AUTH', CLUSTER_PASSWORD];
  await from.redis.call('MIGRATE', 'localhost', to.port, key, 0, 5_000, ...login);
  for (const { redis } of [to, from]) await redis.cluster('SETSLOT', slot, 'NODE', to.id);
}
