import mongoose from 'mongoose';
import { Redis } from 'ioredis';
import { CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION } from '../load/client.ts';
import type { Round, Scene } from '../round.ts';
import { USUAL_LAYOUT } from '../stack/fleet.ts';
import type { Store } from '../stack/start-stores.ts';

/** How a store goes away and comes back. */
interface Absence {
  name: string;
  leave: (scene: Scene) => Promise<void> | void;
  come: (scene: Scene) => Promise<void> | void;
}

/** Suspends the store: it keeps its connections and answers nothing, like a machine that hangs. */
function frozen(storeOf: (scene: Scene) => Store): Absence {
  return {
    name: 'frozen',
    leave: (scene) => {
      storeOf(scene).freeze();
    },
    come: (scene) => {
      storeOf(scene).thaw();
    },
  };
}

/** Kills the store with SIGKILL, and starts it later on the same data. */
function killed(storeOf: (scene: Scene) => Store): Absence {
  return {
    name: 'killed',
    leave: (scene) => storeOf(scene).kill(),
    come: (scene) => storeOf(scene).start(),
  };
}

/**
 * A request that Kafka has not answered is sent again: 1 to 41 records at 100/s. Whole batches were 330 to 650 more, and
 * a sweep that was captured by a living gateway published 6 % more.
 */
function copiesOfUnanswered(deliveries: number): number {
  return 100 + 0.01 * deliveries;
}

/** Takes the store away for the length of the round, and brings it back even when the round is aborted. */
async function beAway(scene: Scene, { name, leave, come }: Absence, store: string): Promise<void> {
  await leave(scene);
  scene.say(`${store} is away (${name}) for ${scene.seconds} s`);
  try {
    await scene.pause(scene.seconds * 1_000);
  } finally {
    await come(scene);
  }
  scene.say(`${store} is back`);
}

const halfOpen: Absence = {
  name: 'half-open',
  leave: ({ proxies }) => {
    proxies.kafka?.cut();
  },
  come: ({ proxies }) => {
    proxies.kafka?.mend();
  },
};

const kafkaOf = ({ stores }: Scene): Store => stores.kafka;

/** After half a minute of outage messages are in time again within a minute; a longer outage leaves more to catch up. */
function recoverWithinMs(seconds: number): number {
  return Math.max(60_000, seconds * 1_000);
}

export const KAFKA_AWAY: readonly Round[] = [frozen(kafkaOf), killed(kafkaOf), halfOpen].map(
  (absence): Round => ({
    name: `F5-${absence.name}`,
    summary: `Kafka is away: ${absence.name}`,
    promise:
      '202 or 503 throughout, accepted messages arrive afterwards, 0 lost, 0 duplicates, no restart needed',
    seconds: [30, 90, 300],
    layout: { ...USUAL_LAYOUT, kafkaProxy: absence === halfOpen ? 'all' : 'none' },
    answers: ['503'],
    maxCopies: copiesOfUnanswered,
    recoverWithinMs,
    async inject(scene) {
      await beAway(scene, absence, 'Kafka');
      return { endedAtMs: Date.now() };
    },
  }),
);

/** The gateway is publishing its backlog by then. */
const KILLED_AFTER_MS = 5_000;
/** The sweep takes over ten seconds after the last heartbeat, and has published what is left a minute later. */
const PUBLISHED_WITHIN_MS = 70_000;

export const GATEWAY_KILLED_AFTER: Round = {
  name: 'F5-gateway-killed',
  touches: ['gateway'],
  summary: 'Kafka is away: frozen; five seconds after its return, kill -9 of a gateway',
  promise: '0 lost, 0 duplicates: the sweep publishes the rest of its backlog within 70 s',
  seconds: [30],
  answers: ['503', '409', REFUSED_CONNECTION, CLOSED_CONNECTION, NO_ANSWER],
  maxCopies: copiesOfUnanswered,
  recoverWithinMs: (seconds) => Math.max(PUBLISHED_WITHIN_MS, seconds * 1_000),
  async inject(scene) {
    await beAway(scene, frozen(kafkaOf), 'Kafka');
    await scene.pause(KILLED_AFTER_MS);
    await scene.fleet.kill('gateway-1');
    scene.say('gateway-1 was killed');
    return { endedAtMs: Date.now() };
  },
};

const mongodbOf = ({ stores }: Scene): Store => stores.mongodb;
const ANSWERS = ['503', '409', CLOSED_CONNECTION, NO_ANSWER];

const stalled: Absence = {
  name: 'writes stalled',
  leave: (scene) => runAsAdmin(scene, { fsync: 1, lock: true }),
  come: (scene) => runAsAdmin(scene, { fsyncUnlock: 1 }),
};

async function runAsAdmin({ stores }: Scene, command: Record<string, unknown>): Promise<void> {
  const { host } = new URL(stores.addresses.mongodbUrl);
  const client = new mongoose.mongo.MongoClient(`mongodb://${host}/?directConnection=true`);
  try {
    await client.db().admin().command(command);
  } finally {
    await client.close();
  }
}

const away = [frozen(mongodbOf), killed(mongodbOf)].map((absence): Round => ({
  name: `F8-${absence.name}`,
  summary: `the primary of MongoDB is away: ${absence.name}`,
  promise: '503 meanwhile, 0 lost, 0 duplicates, no delivery in a wrong state',
  seconds: [15, 30, 60],
  answers: ANSWERS,
  keepsNothing: true,
  recoverWithinMs,
  async inject(scene) {
    await beAway(scene, absence, 'MongoDB');
    return { endedAtMs: Date.now() };
  },
}));

/**
 * The replica set of the local stack has one member, so a majority cannot stall while the primary works. The nearest
 * fault is a member that answers reads and confirms no write.
 */
const majority: Round = {
  name: 'F8-stalled',
  summary: 'MongoDB answers reads and confirms no write (stands for a stalled majority)',
  promise: '503 meanwhile, 0 lost, 0 duplicates',
  seconds: [600],
  answers: ANSWERS,
  keepsNothing: true,
  recoverWithinMs,
  async inject(scene) {
    await beAway(scene, stalled, 'MongoDB');
    return { endedAtMs: Date.now() };
  },
};

export const MONGODB_AWAY: readonly Round[] = [...away, majority];

const redisOf = ({ stores }: Scene) => stores.redis;
const SLOW_BY_MS = 2_000;
const FLUSH_EVERY_MS = 1_000;

const shared = {
  promise: '202 throughout, deliveries go on, 0 lost, 0 duplicates, idempotency keys still hold',
  seconds: [30],
  recoverWithinMs: (): number => 10_000,
};

export const REDIS_AWAY: readonly Round[] = [
  ...[frozen(redisOf), killed(redisOf)].map((absence): Round => ({
    ...shared,
    name: `F9-${absence.name}`,
    summary: `Redis is away: ${absence.name}`,
    async inject(scene) {
      await beAway(scene, absence, 'Redis');
      return { endedAtMs: Date.now() };
    },
  })),
  {
    ...shared,
    name: 'F9-slow',
    summary: `Redis takes ${SLOW_BY_MS / 1_000} s for each command`,
    layout: { ...USUAL_LAYOUT, hasRedisProxy: true },
    async inject(scene) {
      const { proxies } = scene;
      const slow = {
        name: 'slow',
        leave: () => proxies.redis?.delayRequestsBy(SLOW_BY_MS),
        come: () => proxies.redis?.delayRequestsBy(0),
      };
      await beAway(scene, slow, 'Redis');
      return { endedAtMs: Date.now() };
    },
  },
  {
    ...shared,
    name: 'F9-flushed',
    summary: 'Redis loses everything every second',
    async inject({ stores, seconds, pause }) {
      const redis = new Redis(stores.addresses.redisUrl);
      try {
        for (let flushes = 0; flushes * FLUSH_EVERY_MS < seconds * 1_000; flushes += 1) {
          await redis.flushall();
          await pause(FLUSH_EVERY_MS);
        }
      } finally {
        redis.disconnect();
      }
      return { endedAtMs: Date.now() };
    },
  },
];
