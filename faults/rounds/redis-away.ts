import { Redis } from 'ioredis';
import type { Round, Scene } from '../round.ts';
import { USUAL_LAYOUT } from '../stack/layout.ts';
import { beAway, frozen, killed } from './kafka-away.ts';

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
