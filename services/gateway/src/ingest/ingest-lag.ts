import {
  clusterOf,
  clustersOf,
  companyTopicOf,
  ingestGroupId,
  type IngestSource,
} from '@posthorn/domain/ingest.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import {
  createKafkaClient,
  type ExistingTopics,
  readTopics,
} from '@posthorn/platform/kafka/connect.ts';
import { foreignAccessOf } from '@posthorn/platform/kafka/foreign-access.ts';
import { createGroupPositions } from '@posthorn/platform/kafka/offsets/group-positions.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import type { IngestLag } from '../history/overview.ts';
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
  /** Returns how many records of the company's topics are not accepted; null when it has none. Asks Kafka. */
  measure: (companyId: string) => Promise<number | null>;
  monotonicMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Returns what was measured last, at once: an overview does not wait for Kafka. A measurement that is older than 10 s
 * begins the next one, whose result is for a later request. Only what is not known yet is waited for, half a second at most.
 */
export function createIngestLag({ measure, monotonicMs, logger }: IngestLagDeps): IngestLag {
  const kept = new Map<string, { lag: number | null; atMs: number }>();
  const measuring = new Map<string, Promise<number | null>>();
  let warnedAtMs = -Infinity;

  async function measureAgain(companyId: string): Promise<number | null> {
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

/** Opens it for the configured sources. */
export function openIngestLag({ context, kafka }: Basis): IngestLag {
  const { config, logger, lifecycle } = context;
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS: hasCompanyTopics } = config;
  const { TOPIC_PREFIX: prefix } = config;
  const clusters = clustersOf(sources, hasCompanyTopics).map((cluster) => {
    const client =
      cluster === ''
        ? kafka.kafka
        : createKafkaClient(
            'posthorn-ingest-lag',
            foreignAccessOf(config.INGEST_CLUSTERS, cluster),
            logger,
          );
    const groupId = ingestGroupId(prefix);
    const positions = createGroupPositions(client, { groupId, topics: [] });
    const readKnownTopics = createTopicReads(client);
    lifecycle.onStop('positions of ingestion', positions.close);
    return {
      topicsOf: (companyId: string): string[] => [
        ...topicsOf(sources, cluster, companyId),
        ...(cluster === '' && hasCompanyTopics ? [companyTopicOf(prefix, companyId)] : []),
      ],
      lagIn: (topics: readonly string[]) => lagIn(readKnownTopics, positions.readAll, topics),
    };
  });
  if (clusters.length === 0) return () => Promise.resolve(null);
  return createIngestLag({
    async measure(companyId) {
      const lags = await Promise.all(
        clusters.map(({ topicsOf: named, lagIn: read }) => read(named(companyId))),
      );
      const found = lags.filter((lag) => lag !== null);
      return found.length === 0 ? null : found.reduce((sum, lag) => sum + lag, 0);
    },
    monotonicMs: monotonicClockMs,
    logger,
  });
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

async function lagIn(
  readKnownTopics: () => Promise<ExistingTopics>,
  readAll: ReturnType<typeof createGroupPositions>['readAll'],
  topics: readonly string[],
): Promise<number | null> {
  if (topics.length === 0) return null;
  const existing = await readKnownTopics();
  const there = topics.filter((topic) => existing.has(topic));
  if (there.length === 0) return null;
  const positions = await readAll(there);
  return positions.reduce((sum, { lag }) => sum + lag, 0);
}
