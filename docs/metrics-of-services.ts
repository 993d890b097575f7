import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createAuditMetrics } from '@posthorn/platform/mongo/companies/audit-log.ts';
import { createDeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import {
  checkTopics,
  createTopicWatch,
  type TopicWatchDeps,
} from '@posthorn/platform/kafka/topics.ts';
import { createDroppedSpans } from '@posthorn/platform/service/otlp-spans.ts';
import { createMemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { watchClient } from '@posthorn/platform/mongo/connect.ts';
import { watchChanges } from '@posthorn/platform/mongo/follow-changes.ts';
import { createIncidentMetrics } from '@posthorn/platform/records/operator-incidents.ts';
import {
  createCacheMetrics,
  createRegistry,
  watchDependencies,
} from '@posthorn/platform/service/metrics.ts';
import { createStoreMetrics } from '@posthorn/platform/service/store-metrics.ts';
import { createStatsMetrics } from '@posthorn/platform/mongo/messages/write-stats.ts';
import type { Registry } from 'prom-client';
import {
  createDispatcherMetrics,
  watchConnections,
  watchIsolation,
} from '../services/dispatcher/src/metrics.ts';
import { createOutageWatch } from '../services/dispatcher/src/outages.ts';
import {
  createKeyedAccept,
  type KeyedAcceptDeps,
} from '../services/gateway/src/accept/idempotency.ts';
import { createCheckMetrics } from '../services/gateway/src/catalogue/payload-checks.ts';
import { createUndecidedReport } from '../services/gateway/src/accept/select-targets.ts';
import { createHttpMetrics } from '../services/gateway/src/http/http-metrics.ts';
import {
  createRateLimits,
  type RateLimitDeps,
} from '../services/gateway/src/limits/rate-limits.ts';
import { createSignInMetrics } from '../services/gateway/src/people/sign-in-metrics.ts';
import { createIngestMetrics } from '../services/gateway/src/ingest/ingest-metrics.ts';
import { watchUnpublished } from '../services/gateway/src/outbox/outbox.ts';
import { createReleaseCounter } from '../services/retry/src/work/release.ts';
import { createCanaryMetrics } from '../services/retry/src/canary.ts';
import { createDayMetrics } from '../services/retry/src/keep-days.ts';
import { createRetryMetrics, showParked, showUnpublished } from '../services/retry/src/metrics.ts';
import { createSequenceLookMetrics } from '../services/retry/src/look-at-sequences.ts';
import { createTimedMetrics } from '../services/retry/src/release-timed.ts';
import { createWaitingMetrics } from '../services/retry/src/sweep/sweep-waiting.ts';

/** Metrics are only described here, so nothing that they would read is there. */
const NOTHING = {} as never;
const nothing = (): never => NOTHING;
const LIMITS = { company: 0, visit: 1, address: 0, wrongKeys: 0 };

/** Only in a service that settings tell to send canary messages or to export spans. */
export const OPTIONAL_METRICS = /^posthorn_(canary|spans)_/;

/**
 * Returns the registry of each service with every metric that it has, by the functions that make them in
 * the service. That none is missing is tested with running services (test/e2e/operate/operations.test.ts).
 */
export function metricsOfServices(): Record<
  'gateway' | 'dispatcher' | 'retry' | 'ingest',
  Registry
> {
  return { gateway: gateway(), dispatcher: dispatcher(), retry: retry(), ingest: ingest() };
}

function gateway(): Registry {
  const registry = serviceRegistry('gateway');
  createHttpMetrics(registry);
  createSignInMetrics(registry);
  watchChanges(registry, nothing);
  createCacheMetrics(registry);
  createRateLimits({ ...({} as RateLimitDeps), registry, limits: LIMITS, countsBytes: 0 });
  createUndecidedReport({ registry, logger: NOTHING, monotonicMs: nothing });
  createCheckMetrics(registry);
  createKeyedAccept({ ...({} as KeyedAcceptDeps), registry });
  createAuditMetrics(registry, NOTHING);
  createIncidentMetrics(registry);
  watchUnpublished(registry, NOTHING);
  createDroppedSpans(registry);
  createStatsMetrics(registry);
  createStoreMetrics(registry, 'redis');
  return registry;
}

function ingest(): Registry {
  const registry = serviceRegistry('ingest');
  watchChanges(registry, nothing);
  createCacheMetrics(registry);
  createRateLimits({ ...({} as RateLimitDeps), registry, limits: LIMITS, countsBytes: 0 });
  createUndecidedReport({ registry, logger: NOTHING, monotonicMs: nothing });
  createCheckMetrics(registry);
  createKeyedAccept({ ...({} as KeyedAcceptDeps), registry });
  createIngestMetrics(registry, { sources: [], ready: nothing, nowMs: systemClockMs });
  watchUnpublished(registry, NOTHING);
  createDroppedSpans(registry);
  createStatsMetrics(registry);
  createStoreMetrics(registry, 'redis');
  return registry;
}

function dispatcher(): Registry {
  const registry = serviceRegistry('dispatcher');
  createDispatcherMetrics(registry);
  watchChanges(registry, nothing);
  createCacheMetrics(registry);
  watchIsolation(registry, { queues: NOTHING, circuits: NOTHING, limit: 0 });
  watchConnections(registry, { connections: nothing, lookups: nothing });
  createOutageWatch(registry);
  createDroppedSpans(registry);
  createDeadLetters(NOTHING, {
    records: NOTHING,
    logger: NOTHING,
    registry,
    prefix: '',
    report: nothing,
  });
  createIncidentMetrics(registry);
  createStatsMetrics(registry);
  createStoreMetrics(registry, 'redis');
  return registry;
}

function retry(): Registry {
  const registry = serviceRegistry('retry');
  createRetryMetrics(registry, [], systemClockMs);
  createCanaryMetrics(registry, systemClockMs);
  showParked(registry, new Map(), nothing);
  showUnpublished(registry, nothing, systemClockMs);
  createDayMetrics(registry, NOTHING);
  createWaitingMetrics(registry, systemClockMs);
  createTimedMetrics(registry);
  createSequenceLookMetrics(registry);
  createReleaseCounter(registry);
  createStoreMetrics(registry, 'redis');
  createDeadLetters(NOTHING, {
    records: NOTHING,
    logger: NOTHING,
    registry,
    prefix: '',
    report: nothing,
  });
  createIncidentMetrics(registry);
  createAuditMetrics(registry, NOTHING);
  return registry;
}

/** What all have. */
function serviceRegistry(name: string): Registry {
  const registry = createRegistry(name);
  watchDependencies(registry, {});
  createKafkaMetrics(registry, Date.now);
  createTopicWatch({ ...({} as TopicWatchDeps), registry, required: [], optional: [] });
  checkTopics({ specs: [], observed: [], unreadable: null }, { registry, logger: NOTHING });
  createMemoryBudgets(registry);
  watchClient(registry, { on: nothing }, 0);
  return registry;
}
