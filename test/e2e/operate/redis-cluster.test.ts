import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { RedisUser } from '../../../deploy/setup/redis-rights.ts';
import { partitionOf } from '@posthorn/platform/kafka/producer.ts';
import { circuitOf, openCircuit } from '../../support/isolation/circuits.ts';
import { LOCAL, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { metricOf, sendMany, untilDelivered } from '../../support/process/traffic.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { startRedisCluster, type RedisCluster } from '../../support/stores/redis-cluster.ts';
import { refusedBy, urlAs } from '../../support/stores/secured-redis.ts';
import { openTestedRedis, serversOf, type TestedRedis } from '../../support/stores/tested-redis.ts';
import { eventually } from '../../support/time/eventually.ts';

/** The circuit stays open for longer than the test runs. */
const SETTINGS = { CIRCUIT_RESET_MS: '300000', RETRY_DELAYS: '1s,2s' };

const PLAIN = { NODE_ENV: 'production', REDIS_TLS_CA_FILE: '' };

let cluster: RedisCluster;
let store: TestedRedis;
let posthorn: Posthorn;
let endpoint: BusyEndpoint;
/** A webhook with an open circuit. */
let failing: string;

beforeAll(async () => {
  [cluster, endpoint] = await Promise.all([startRedisCluster(), startBusyEndpoint()]);
  store = await openTestedRedis(cluster.env, cluster.stop);
  const as = (user: RedisUser) => ({ REDIS_URL: urlAs(user, cluster.env.REDIS_URL) });
  const apart = { gateway: as('gateway'), dispatcher: as('dispatcher') };
  posthorn = await startPosthorn({ ...SETTINGS, ...cluster.env }, { apart });
});

afterAll(async () => {
  await endpoint.close();
  await posthorn.stop();
  await store.stop();
});

const DEFERRALS = 'posthorn_circuit_breaker_deferrals_total';
const keyOf = (name: string): string => posthorn.env.REDIS_PREFIX + name;
const ofCompany = (): string => keyOf(`circuits-of-company:${posthorn.companyId}`);

async function announcedOn(servers: readonly Redis[]): Promise<number> {
  const keys = await Promise.all(servers.map((server) => server.keys(keyOf('running:*'))));
  return keys.flat().length;
}

describe('Posthorn on a Redis Cluster', () => {
  it('announces the attempts that last, and withdraws them when they are delivered', async () => {
    const { api } = posthorn;
    const { webhookId } = await api.createTarget(endpoint.url);
    const announced = (): Promise<number> => announcedOn(serversOf(store.redis));
    endpoint.hold();
    const sent = await sendMany(api, [webhookId], 8);
    await eventually('all announced', async () => (await announced()) === sent.length);
    endpoint.answerWith(200);
    await untilDelivered(api, sent);
    await eventually('all withdrawn', async () => (await announced()) === 0);
  });

  it('keeps an open circuit whose slot moves to another node, also for the next dispatcher', async () => {
    const { api, dispatcher } = posthorn;
    endpoint.answerWith(500);
    const { webhookId } = await api.createTarget(endpoint.url);
    await openCircuit(posthorn, webhookId);
    failing = webhookId;
    const partition = partitionOf(webhookId, Number(LOCAL.TOPIC_PARTITIONS));
    await cluster.moveSlotOf(keyOf(`circuits-of-partition:${partition}`));
    await cluster.moveSlotOf(ofCompany());
    expect(await circuitOf(api, webhookId)).toBe('open');
    await dispatcher.stop();
    const requests = endpoint.total();
    endpoint.answerWith(200);
    const next = await posthorn.start('dispatcher');
    await api.send({ webhookId }, {});
    await eventually('a deferral', async () => (await metricOf(next, DEFERRALS)) > 0);
    expect(endpoint.total()).toBe(requests);
  });

  it('has needed no more rights than its users have', async () => {
    expect(await refusedBy(serversOf(store.redis))).toEqual([]);
  });

  it('delivers while a node is lost, announces attempts on the others, and knows circuits again after it', async () => {
    const { api } = posthorn;
    const { webhookId } = await api.createTarget(endpoint.url);
    const lost = await cluster.ownerOf(ofCompany());
    const replica = await cluster.addReplica(lost);
    await replica.redis.config('SET', 'cluster-replica-no-failover', 'yes');
    const others = serversOf(store.redis).filter(({ options }) => options.port !== lost.port);
    await lost.kill();

    endpoint.hold();
    const sent = await sendMany(api, [webhookId], 20);
    await eventually('announcements', async () => (await announcedOn(others)) > 0);
    expect(await circuitOf(api, failing)).toBe('closed');
    endpoint.answerWith(200);
    await untilDelivered(api, sent);

    await replica.redis.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
    const isOpen = async (): Promise<boolean> => (await circuitOf(api, failing)) === 'open';
    await eventually('the earlier circuit', isOpen, 20_000);
  });

  it.each([
    ['Sentinels', { REDIS_SENTINELS: 'localhost:26379' }, /REDIS_SENTINELS are both set/],
    ['no TLS, in production', { REDIS_URL: 'redis://unused', ...PLAIN }, /without TLS:[^]*Redis: /],
  ])('does not start with %s', async (_what, changed, message) => {
    await expect(posthorn.start('gateway', changed)).rejects.toThrow(message);
  });
});
