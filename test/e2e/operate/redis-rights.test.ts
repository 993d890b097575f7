import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createEndpointFlows, pauseKeyOf } from '@posthorn/platform/redis/endpoint-flows.ts';
import { createIngestReports } from '@posthorn/platform/redis/ingest-reports.ts';
import { announce, listenForInvalidations } from '@posthorn/platform/redis/invalidations.ts';
import {
  createLiveAttempts,
  listenForLiveAttempts,
} from '@posthorn/platform/redis/live-attempts.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createOpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import { createReadingPositions } from '@posthorn/platform/redis/reading-positions.ts';
import { createRunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';
import { announceWork, listenForWork } from '@posthorn/platform/redis/wake-work.ts';
import type { RedisClient } from '@posthorn/platform/redis/connect.ts';
import { Cluster, type Redis } from 'ioredis';
import { REDIS_USERS, type RedisUser } from '../../../deploy/setup/redis-rights.ts';
import { createAddToSharedCounts } from '../../../services/gateway/src/limits/rate-limit-counts.ts';
import { createChildren } from '../../../tools/local-stack/processes/children.ts';
import { sampleFlow } from '../../support/samples/sample-flow.ts';
import { startRedisCluster } from '../../support/stores/redis-cluster.ts';
import { refusedBy, urlAs, startSecuredRedis } from '../../support/stores/secured-redis.ts';
import { openTestedRedis, type TestedRedis } from '../../support/stores/tested-redis.ts';
import { eventually } from '../../support/time/eventually.ts';

interface Subject {
  env: Record<string, string> & { REDIS_URL: string };
  /** Makes clients do all that they do to find a key. */
  complicate: () => Promise<void>;
  stop: () => Promise<void>;
}

const PREFIX = 'trights:';
const COMPANY = 'comp_1';
const CIRCUITS = `${PREFIX}circuits-of-company:${COMPANY}`;
const URL = 'https://one.example/';
const WEBHOOK = 'wh_1';
const NOW_MS = 1_700_000_000_000;
const QUIET = { onNews: () => undefined, logger: createLogger('test', 'silent') };
const FLOW = sampleFlow();

async function startServer(): Promise<Subject> {
  const dir = mkdtempSync(join(tmpdir(), 'posthorn-redis-rights-'));
  const children = createChildren(dir);
  const { url, caFile } = await startSecuredRedis(dir, children);
  return {
    env: { REDIS_URL: url, REDIS_TLS_CA_FILE: caFile },
    complicate: () => Promise.resolve(),
    async stop() {
      await children.stopAll();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** With a replica, and a key that is on its way to another node. */
async function startCluster(): Promise<Subject> {
  const { env, stop, ...cluster } = await startRedisCluster();
  const complicate = async (): Promise<void> => {
    await cluster.addReplica(await cluster.ownerOf(CIRCUITS));
    await cluster.beginToMoveSlotOf(CIRCUITS);
  };
  return { env, complicate, stop };
}

describe.each([
  ['a server', startServer],
  ['a cluster', startCluster],
])('The users of processes on %s [security]', (kind, start) => {
  let subject: Subject;
  let tests: TestedRedis;
  const users = new Map<RedisUser, TestedRedis>();

  beforeAll(async () => {
    subject = await start();
    await subject.complicate();
    const { env } = subject;
    const nothing = (): Promise<void> => Promise.resolve();
    tests = await openTestedRedis(env, nothing);
    for (const user of REDIS_USERS) {
      const REDIS_URL = urlAs(user, env.REDIS_URL);
      users.set(user, await openTestedRedis({ ...env, REDIS_URL }, nothing));
    }
  });

  afterAll(async () => {
    await Promise.all([tests, ...users.values()].map((each) => each.stop()));
    await subject.stop();
  });

  function connectionsOf(user: RedisUser): TestedRedis {
    const found = users.get(user);
    if (!found) throw new Error(`no ${user}`);
    return found;
  }

  it('suffice for all that the processes do', async () => {
    const [gateway, dispatcher] = [connectionsOf('gateway'), connectionsOf('dispatcher')];
    const retry = connectionsOf('retry');
    await doAsDispatcher(dispatcher.redis);
    await readAsGateway(gateway.redis);
    const circuits = createOpenCircuits(retry.redis, PREFIX, () => NOW_MS);
    expect(await circuits.read(COMPANY, WEBHOOK)).toBe(NOW_MS);
    const heard = new Set<string>();
    for (const user of ['gateway', 'dispatcher'] as const) {
      const subscriber = connectionsOf(user).connect();
      listenForInvalidations(subscriber, PREFIX, ({ id }) => heard.add(`${user} ${id}`));
      if (user === 'gateway') listenForLiveAttempts(subscriber, PREFIX, QUIET);
    }
    listenForWork(retry.connect(), PREFIX, (kind) => heard.add(`retry ${kind}`));
    await eventually('all announcements', async () => {
      await announce(gateway.redis, PREFIX, [{ companyId: COMPANY, id: 'of_gateway' }]);
      await announce(retry.redis, PREFIX, [{ companyId: COMPANY, id: 'of_retry' }]);
      await announceWork(gateway.redis, PREFIX, 'resends');
      await announceWork(retry.redis, PREFIX, 'timed');
      return heard.size === 6;
    });
    expect(await refusedBy(nodesOf(tests.redis))).toEqual([]);
  });

  const ANYBODY_BEYOND: string[][] = [
    ['flushall'],
    ['flushdb'],
    ['config', 'get', 'requirepass'],
    ['acl', 'list'],
    ['keys', '*'],
    ['scan', '0'],
    ['client', 'list'],
    ['eval', 'return 1', '0'],
    ['shutdown', 'nosave'],
    ['publish', 'other:invalidations', 'x'],
    ['subscribe', 'other:invalidations'],
    ['get', 'other:rate:key:1'],
    ['del', 'other:running:x'],
    ['hset', 'other:circuits-of-company:x', WEBHOOK, '0'],
  ];
  const BEYOND: Record<RedisUser, string[][]> = {
    gateway: [
      ['get', `${PREFIX}running:x`],
      ['hget', `${PREFIX}pauses-of-partition:1`, WEBHOOK],
      ['hset', CIRCUITS, WEBHOOK, '0'],
      ['hdel', CIRCUITS, WEBHOOK],
      ['hset', `${PREFIX}circuits-of-partition:1`, WEBHOOK, '0'],
      ['incrby', `${PREFIX}endpoint-flow:x`, '1'],
      ['pexpire', `${PREFIX}reading-positions`, '1'],
      ['set', `${PREFIX}running:x`, 'gateway'],
      ['set', CIRCUITS, '0'],
    ],
    dispatcher: [
      ['zadd', `${PREFIX}live-watched`, '1', 'comp_1'],
      ['subscribe', `${PREFIX}live-attempts`],
      ['publish', `${PREFIX}invalidations`, `comp_1/${WEBHOOK}`],
      ['mget', `${PREFIX}rate:key:1`],
      ['hgetall', CIRCUITS],
      ['del', `${PREFIX}rate:key:1`],
      ['publish', `${PREFIX}work`, 'resends'],
    ],
    retry: [
      ['hset', CIRCUITS, WEBHOOK, '0'],
      ['get', `${PREFIX}running:x`],
      ['subscribe', `${PREFIX}live-attempts`],
      ['publish', `${PREFIX}live-attempts`, 'x'],
    ],
  };

  it.each(REDIS_USERS)('let the %s do nothing else', async (user) => {
    const { redis } = connectionsOf(user);
    const inACluster =
      kind === 'a cluster'
        ? [
            ['cluster', 'nodes'],
            ['cluster', 'reset'],
          ]
        : [];
    for (const [name = '', ...args] of [...ANYBODY_BEYOND, ...BEYOND[user], ...inACluster]) {
      await expect(redis.call(name, ...args)).rejects.toThrow(/^NOPERM /);
    }
  });
});

async function doAsDispatcher(redis: RedisClient): Promise<void> {
  const circuits = createOpenCircuits(redis, PREFIX, () => NOW_MS);
  const of = { webhookId: WEBHOOK, companyId: COMPANY, partition: 1 };
  circuits.opened(of, { probeAtMs: NOW_MS, sinceMs: NOW_MS });
  circuits.opened({ ...of, webhookId: 'wh_open-long-ago' }, { probeAtMs: 0, sinceMs: 0 });
  circuits.closed({ ...of, webhookId: 'wh_2' });
  const limits = { most: 10, withinMs: 5_000 };
  await eventually('a circuit', async () =>
    (await circuits.takeOver([1], limits)).found.has(WEBHOOK),
  );
  const flows = createEndpointFlows(redis, PREFIX, () => NOW_MS);
  flows.report(new Map([[WEBHOOK, FLOW]]));
  await eventually('a flow', async () => (await flows.readAll([WEBHOOK]))[0] !== null);
  flows.reportPause({ ...of, url: URL }, NOW_MS + 1);
  const pause = pauseKeyOf({ webhookId: WEBHOOK, url: URL });
  await eventually('a pause', async () =>
    (await flows.takeOverPauses([1], limits)).found.has(pause),
  );
  const attempts = createRunningAttempts(redis, PREFIX, 'dispatcher-1');
  attempts.announce(['a', 'b'], 60_000);
  expect(await attempts.claim(['a', 'b', 'c'], 60_000)).toEqual(new Set(['a', 'b', 'c']));
  attempts.withdraw(['a', 'b', 'c']);
  const live = createLiveAttempts(redis, PREFIX, () => NOW_MS);
  await live.readWatched();
  live.publish({ companyId: 'comp_1', attempts: [], hasMore: true });
  createReadingPositions(redis, PREFIX, () => NOW_MS).report(new Map([[3, NOW_MS]]));
}

async function readAsGateway(redis: RedisClient): Promise<void> {
  const circuits = createOpenCircuits(redis, PREFIX, () => NOW_MS);
  expect(await circuits.read(COMPANY, WEBHOOK)).toBe(NOW_MS);
  const open = { webhookId: WEBHOOK, probeAtMs: NOW_MS, sinceMs: NOW_MS };
  expect(await circuits.list(COMPANY)).toContainEqual(open);
  const flows = createEndpointFlows(redis, PREFIX, () => NOW_MS);
  expect(await flows.read(WEBHOOK)).toEqual(FLOW);
  const add = createAddToSharedCounts(redis, PREFIX);
  const counts = await add([{ key: 'key', minute: 1, added: 2 }]);
  expect(counts).toEqual([{ current: 2, previous: 0 }]);
  await createLiveAttempts(redis, PREFIX, () => NOW_MS).watch(['comp_1'], 1_000);
  const positions = createReadingPositions(redis, PREFIX, () => NOW_MS);
  await eventually(
    'the report',
    async () => (await positions.read(new Set([3]))).get(3) === NOW_MS,
  );
  const reports = createIngestReports(redis, PREFIX);
  const orders = [0, 1].map((partition) => ({ topic: 'orders', partition }));
  const report = { reason: 'rate_limited', perSecond: 0 } as const;
  reports.report(
    '',
    orders.map((each) => ({ ...each, report })),
  );
  await eventually('both reports', async () => (await reports.read('', orders)).size === 2);
}

/** Replicas too. */
function nodesOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes('all') : [redis];
}
