import { clustersOf, ingestGroupId } from '@posthorn/domain/ingest.ts';
import { topicSpecs } from '@posthorn/domain/records/topics.ts';
import { startTicker } from '@posthorn/platform/async/loop.ts';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { foreignAccessOf } from '@posthorn/platform/kafka/foreign-access.ts';
import type { ReadyRecords } from '@posthorn/platform/kafka/record-log.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { createIngestReports, REPEAT_REPORTS_MS } from '@posthorn/platform/redis/ingest-reports.ts';
import { StartupError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  ClusterIngest,
  type ClusterIngestDeps,
  createIngestBudget,
  type IngestBudget,
  sumReady,
} from './ingest.ts';
import { createIngestMetrics, type IngestMetrics, sourceNames } from './ingest-metrics.ts';
import { createLaneDeps, type IngestParts } from './accept-records.ts';

/** Starts to accept the records of the sources that are configured (docs/decisions/0060-ingestion-from-kafka.md). */
export function openIngest(parts: IngestParts): void {
  const { context, kafka, budgets, gateway } = parts;
  const { config, lifecycle, registry } = context;
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS: hasCompanyTopics } = config;
  const clusters = clustersOf(sources, hasCompanyTopics);
  if (clusters.length === 0) {
    throw new StartupError(
      'There is nothing to ingest: set INGEST_SOURCES or INGEST_COMPANY_TOPICS.',
    );
  }
  const recordBytes = memoryShare('ingest', 'records', config.MEMORY_MIB);
  const budget = createIngestBudget(recordBytes);
  budgets.add('ingest', recordBytes, budget.bytes.used);
  const { nowMs } = gateway;
  const running: ClusterIngest[] = [];
  const ready = (): ReadonlyMap<string, ReadyRecords> =>
    sumReady(running.map((each) => each.ready(nowMs())));
  const topics = sources.map(({ topic }) => topic);
  const names = sourceNames(topics, hasCompanyTopics);
  const metrics = createIngestMetrics(registry, { sources: names, ready, nowMs });
  const laneDeps = createLaneDeps(parts, metrics);
  const onOutOfRange = createOutOfRangeReport(context.logger, metrics);
  const clusterParts = { parts, budget, laneDeps, onOutOfRange };
  running.push(...clusters.map((each) => openCluster(each, clusterParts)));
  const reports = createIngestReports(parts.redis.client, config.REDIS_PREFIX);
  const reporting = startTicker(REPEAT_REPORTS_MS, () => {
    running.forEach((each, n) => {
      reports.report(clusters[n] ?? '', each.reports());
    });
  });
  kafka.metrics.show(ingestGroupId(config.TOPIC_PREFIX), {
    isRunning: () => running.every((each) => each.isRunning()),
    ready: () => new Map(),
  });
  for (const each of running) each.start();
  lifecycle.onStop('ingest', async () => {
    reporting.stop();
    await Promise.all(running.map((each) => each.stop(config.DRAIN_TIMEOUT_MS)));
  });
}

/** A loss of records at the end is an error and is counted; what the retention of a topic has removed is a warning. */
export function createOutOfRangeReport(
  logger: Pick<Logger, 'error' | 'warn'>,
  metrics: Pick<IngestMetrics, 'endLost'>,
): ClusterIngestDeps['onOutOfRange'] {
  return (source, { hasLostItsEnd, ...place }) => {
    if (hasLostItsEnd) {
      metrics.endLost(source);
      logger.error(place, 'a source ends before what was read of it, reading goes on at its end');
    } else {
      logger.warn(
        place,
        'a source no longer has the records that are next, reading goes on at its beginning',
      );
    }
  };
}

interface ClusterParts {
  parts: IngestParts;
  budget: IngestBudget;
  laneDeps: ClusterIngestDeps['laneDeps'];
  onOutOfRange: ClusterIngestDeps['onOutOfRange'];
}

function openCluster(
  cluster: string,
  { parts, budget, laneDeps, onOutOfRange }: ClusterParts,
): ClusterIngest {
  const { context, kafka } = parts;
  const { config, logger } = context;
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS, TOPIC_PREFIX: prefix } = config;
  const isOwn = cluster === '';
  const ownTopics = topicSpecs(kafka.topics).map(({ name }) => name);
  return new ClusterIngest({
    kafka: isOwn
      ? kafka.kafka
      : createKafkaClient(
          'posthorn-ingest',
          foreignAccessOf(config.INGEST_CLUSTERS, cluster),
          logger,
        ),
    groupId: ingestGroupId(prefix),
    cluster,
    sources,
    companyTopicsPrefix: isOwn && INGEST_COMPANY_TOPICS ? prefix : null,
    ownTopics: isOwn ? new Set([...ownTopics, ...kafka.delayTopics.keys()]) : new Set(),
    budget,
    laneDeps,
    areStoresUp: parts.isMongoConnected,
    onOutOfRange,
    metrics: kafka.metrics,
    monotonicMs: parts.monotonicMs,
    nowMs: parts.gateway.nowMs,
    logger,
  });
}
