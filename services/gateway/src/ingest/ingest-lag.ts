import {
  clusterOf,
  clustersOf,
  companyTopicOf,
  ingestGroupId,
  type IngestSource,
} from '@posthorn/domain/ingest.ts';
import type { LagReason } from '@posthorn/domain/ingest-lag.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import {
  createKafkaClient,
  type ExistingTopics,
  readTopics,
} from '@posthorn/platform/kafka/connect.ts';
import { foreignAccessOf } from '@posthorn/platform/kafka/foreign-access.ts';
import { createGroupPositions } from '@posthorn/platform/kafka/offsets/group-positions.ts';
import { keyOf } from '@posthorn/platform/kafka/record-log.ts';
import { readLagCauses } from '@posthorn/platform/records/lag-causes.ts';
import { createIngestReports } from '@posthorn/platform/redis/ingest-reports.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import type { IngestLag, MeasuredLag } from '../history/overview.ts';
import type { Basis } from '../open-acceptance.ts';

/** How long a lag is shown before it is measured again. */
const SHOWN_FOR_MS = 10_000;
/** How long a first request waits for its measurement, which takes some milliseconds while Kafka answers. */
const FIRST_WITHIN_MS = 500;
/** Companies whose lag is kept; the one that was measured longest ago is dropped. */
const MAX_KEPT = 1_000;
const WARN_EVERY_MS = 60_000;
/** While Kafka does not answer, each lasts for 20 s. */
const MAX_MEASURING = 4;

interface IngestLagDeps {
  /** Returns the lag of the company's topics; null when it has none. Asks Kafka. */
  measure: (companyId: string) => Promise<MeasuredLag | null>;
  monotonicMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Returns what was measured last, at once: an overview does not wait for Kafka. A measurement that is older than 10 s
 * begins the next one, whose result is for a later request. Only what is not known yet is waited for, half a second at most.
 */
export function createIngestLag({ measure, monotonicMs, logger }: IngestLagDeps): IngestLag {
  const kept = new Map<string, { lag: MeasuredLag | null; atMs: number }>();
  const measuring = new Map<string, Promise<MeasuredLag | null>>();
  let warnedAtMs = -Infinity;

  async function measureAgain(companyId: string): Promise<MeasuredLag | null> {
    try {
      const lag = await measure(companyId);
      kept.delete(companyId);
      kept.set(companyId, { lag, atMs: monotonicMs() });
      const [oldest] = kept.keys();
      if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
      return lag;
    } catch (error) {
      if (monotonicMs() - warnedAtMs >= WARN_EVERY_MS) {
        warnedAtMs = monotonicMs();
        logger.warn({ err: error, companyId }, 'the lag of ingestion cannot be measured');
      }
      return null;
    } finally {
      measuring.delete(companyId);
    }
  }

  return async (companyId) => {
    const known = kept.get(companyId);
    const isOld = !known || monotonicMs() - known.atMs >= SHOWN_FOR_MS;
    if (isOld && !measuring.has(companyId) && measuring.size < MAX_MEASURING) {
      measuring.set(companyId, measureAgain(companyId));
    }
    if (known) return known.lag;
    const first = measuring.get(companyId) ?? Promise.resolve(null);
    return withTimeout(first, FIRST_WITHIN_MS).catch(() => null);
  };
}

/** The topics of a company in one cluster, and their lags. */
type LagsIn = (companyId: string) => Promise<PartitionLag[] | null>;

interface PartitionLag {
  records: number;
  reason: LagReason | null;
}

/** Opens it for the configured sources. */
export function openIngestLag(basis: Basis): IngestLag {
  const { config, logger } = basis.context;
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS: hasCompanyTopics } = config;
  const clusters = clustersOf(sources, hasCompanyTopics);
  const lagsIn = clusters.map((cluster) => openCluster(basis, cluster));
  if (lagsIn.length === 0) return () => Promise.resolve(null);
  return createIngestLag({
    async measure(companyId) {
      const found = await Promise.all(lagsIn.map((read) => read(companyId)));
      const lags = found.filter((each) => each !== null);
      return lags.length === 0 ? null : sumOf(lags.flat());
    },
    monotonicMs: monotonicClockMs,
    logger,
  });
}

function openCluster({ context, kafka, redis }: Basis, cluster: string): LagsIn {
  const { config, logger, lifecycle } = context;
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS: hasCompanyTopics } = config;
  const { TOPIC_PREFIX: prefix } = config;
  const client =
    cluster === ''
      ? kafka.kafka
      : createKafkaClient(
          'posthorn-ingest-lag',
          foreignAccessOf(config.INGEST_CLUSTERS, cluster),
          logger,
        );
  const positions = createGroupPositions(client, { groupId: ingestGroupId(prefix), topics: [] });
  const reports = createIngestReports(redis.client, config.REDIS_PREFIX);
  const readKnownTopics = createTopicReads(client);
  lifecycle.onStop('positions of ingestion', positions.close);
  return async (companyId) => {
    const own = cluster === '' && hasCompanyTopics ? [companyTopicOf(prefix, companyId)] : [];
    const topics = [...topicsOf(sources, cluster, companyId), ...own];
    if (topics.length === 0) return null;
    const existing = await readKnownTopics();
    const there = topics.filter((topic) => existing.has(topic));
    if (there.length === 0) return null;
    const found = await positions.readAll(there);
    const causes = await readLagCauses({ positions, reports, cluster }, found);
    return found.map((each) => {
      const reason = causes.get(keyOf(each))?.reason ?? null;
      return { records: each.lag, reason };
    });
  };
}

/** Adds up the records. The reason is that of the partition with the most of them. */
export function sumOf(lags: readonly PartitionLag[]): MeasuredLag {
  const [most] = lags.toSorted((a, b) => b.records - a.records);
  const records = lags.reduce((sum, each) => sum + each.records, 0);
  return { records, reason: most?.reason ?? null };
}

function topicsOf(sources: readonly IngestSource[], cluster: string, companyId: string): string[] {
  const ofCompany = sources.filter((each) => each.companyId === companyId);
  return ofCompany.filter((each) => clusterOf(each) === cluster).map(({ topic }) => topic);
}

/** One list of all topics serves all companies for 10 s. */
function createTopicReads(kafka: Kafka): () => Promise<ExistingTopics> {
  let known: Promise<ExistingTopics> | undefined;
  let readAtMs = 0;
  return () => {
    if (known && monotonicClockMs() - readAtMs < SHOWN_FOR_MS) return known;
    readAtMs = monotonicClockMs();
    known = readTopics(kafka);
    known.catch(() => (known = undefined));
    return known;
  };
}
