import type { ForgettingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import {
  type Change,
  type FollowedChanges,
  followChanges,
} from '@posthorn/platform/mongo/follow-changes.ts';
import {
  announce,
  type Invalidate,
  type Invalidation,
  listenForInvalidations,
} from '@posthorn/platform/redis/invalidations.ts';
import type { OpenRedis } from '@posthorn/platform/redis/open-redis.ts';
import { createCacheMetrics } from '@posthorn/platform/service/metrics.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Connection } from 'mongoose';
import type { IngestConfig } from './config.ts';

type Context = ServiceContext<IngestConfig>;

/** Makes the caches of configuration, here and in other processes, forget what has changed. */
export interface Caches {
  /** Drops the changed things from the caches here, and announces them to other processes. */
  invalidate: Invalidate;
  /** Calls `forget` with the id of each thing that is announced as changed, here or by another process. */
  onInvalidation: (forget: (id: string) => void) => void;
  /** Lets a cache forget what changes: at once what is announced, within a second whatever is changed. */
  add: (name: string, cache: ForgettingCache) => void;
  /** Returns true while every change of a company, key, app and webhook is known within a second. */
  areChangesFollowed: () => boolean;
  /** Returns how many changes of webhooks were followed whose app is not known: updates and removals. */
  changesOfUnknownApps: () => number;
  /** Resolves when that is so for the first time. */
  whenFollowed: Promise<void>;
}

export function openCaches(
  context: Context,
  connection: Connection,
  { client, subscriber }: OpenRedis,
): Caches {
  const { REDIS_PREFIX } = context.config;
  const changes = followChanges(context, connection, [
    'companies',
    'apiKeys',
    'projects',
    'eventTypes',
    'apps',
    'webhooks',
  ]);
  const watchCache = createCacheMetrics(context.registry);
  const forgetting: ((id: string) => void)[] = [];
  const onChange = ({ id }: Invalidation): void => {
    for (const forget of forgetting) forget(id);
  };
  listenForInvalidations(subscriber, REDIS_PREFIX, onChange);
  return {
    async invalidate(...changed) {
      changed.forEach(onChange);
      await announce(client, REDIS_PREFIX, changed);
    },
    onInvalidation(forget) {
      forgetting.push(forget);
    },
    add(name, cache) {
      watchCache(name, cache);
      const forget = (id: string): void => {
        cache.forget(id);
      };
      forgetting.push(forget);
      changes.listen(
        ({ id, appId }) => {
          forget(id);
          if (appId !== null) forget(appId);
        },
        () => {
          cache.forgetAll();
        },
      );
    },
    areChangesFollowed: changes.isCurrent,
    changesOfUnknownApps: countChangesOfUnknownApps(changes),
    whenFollowed: changes.whenCurrent,
  };
}

/** That a webhook fails is noted in it again and again, and decides nothing at acceptance. */
const FAILING = 'failing';

export function countChangesOfUnknownApps({
  listen,
}: Pick<FollowedChanges, 'listen'>): () => number {
  let count = 0;
  const onChange = ({ collection, appId, fields }: Change): void => {
    if (collection !== 'webhooks' || appId !== null) return;
    if (!fields?.every((each) => each === FAILING)) count += 1;
  };
  // What may have been missed makes each cache forget everything.
  listen(onChange, () => undefined);
  return () => count;
}
