import type { AnyRound } from './round.ts';
import { SIMULATION } from './rounds/alone.ts';
import { BROKEN } from './rounds/faulty-builds/broken.ts';
import { CLOCKS } from './rounds/clock.ts';
import { ENDPOINT_FAULTS } from './rounds/endpoints.ts';
import { FROZEN_SERVICES } from './rounds/frozen-services.ts';
import { HUNG_ATTEMPTS } from './rounds/faulty-builds/hung-attempts.ts';
import { GATEWAY_KILLED_AFTER, KAFKA_AWAY } from './rounds/kafka-away.ts';
import { CALM, KILLS, UNPUBLISHED } from './rounds/kills.ts';
import { MONGODB_AWAY } from './rounds/mongodb-away.ts';
import { MOVED_PARTITIONS } from './rounds/moved-partitions.ts';
import { REDIS_AWAY } from './rounds/redis-away.ts';
import { RESTARTS } from './rounds/restarts.ts';
import { SOAK } from './rounds/soak.ts';
import { STORE_FAULTS } from './rounds/stores.ts';
import { UPGRADE } from './rounds/upgrade.ts';

/** All rounds. Those of one layout follow one another, so that they share a stack. */
export const ROUNDS: readonly AnyRound[] = [
  CALM,
  ...KILLS,
  UNPUBLISHED,
  ...RESTARTS,
  ...FROZEN_SERVICES,
  ...KAFKA_AWAY,
  GATEWAY_KILLED_AFTER,
  ...MONGODB_AWAY,
  ...REDIS_AWAY,
  ...ENDPOINT_FAULTS,
  ...CLOCKS,
  SIMULATION,
  ...STORE_FAULTS,
  MOVED_PARTITIONS,
  ...HUNG_ATTEMPTS,
  UPGRADE,
  ...BROKEN,
  SOAK,
];
