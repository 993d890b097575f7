import { clustersOf, type NamedSource, sourcesAmong } from '@posthorn/domain/ingest.ts';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import {
  assertKafkaReachable,
  createKafkaClient,
  type KafkaAccess,
  kafkaAccessOf,
} from '@posthorn/platform/kafka/connect.ts';
import { foreignAccessOf } from '@posthorn/platform/kafka/foreign-access.ts';
import { readTopic } from '@posthorn/platform/kafka/read-topic.ts';
import { readReject, type StoredReject } from '@posthorn/platform/records/ingest-rejects.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { Command } from 'commander';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { parseOptions, timeOption } from './command.ts';
import { lettersConfig, silent } from './letters.ts';

export const ingestConfig = lettersConfig.extend(settings.ingest);

type IngestConfig = z.infer<typeof ingestConfig>;

/** The clusters of the sources, each with its client. */
export interface Clusters {
  /** The installation's own. */
  own: Kafka;
  all: readonly { cluster: string; kafka: Kafka }[];
  sourcesIn: (cluster: string, existing: Iterable<string>) => ReadonlyMap<string, NamedSource>;
}

/** Throws StartupError when the Kafka of the installation does not respond. */
export async function openClusters(config: IngestConfig): Promise<Clusters> {
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS: hasCompanyTopics } = config;
  const access = kafkaAccessOf(config);
  const clientFor = (of: KafkaAccess): Kafka => createKafkaClient('posthorn-admin', of, silent());
  const own = clientFor(access);
  await assertKafkaReachable(own, access.brokers);
  const others = clustersOf(sources, false).filter((cluster) => cluster !== '');
  return {
    own,
    all: [
      { cluster: '', kafka: own },
      ...others.map((cluster) => ({
        cluster,
        kafka: clientFor(foreignAccessOf(config.INGEST_CLUSTERS, cluster)),
      })),
    ],
    sourcesIn: (cluster, existing) =>
      sourcesAmong(existing, {
        sources,
        cluster,
        companyTopicsPrefix: cluster === '' && hasCompanyTopics ? config.TOPIC_PREFIX : null,
      }),
  };
}

const filterSchema = z.object({
  code: z.string().optional(),
  source: z.string().optional(),
  since: timeOption.optional(),
  until: timeOption.optional(),
});

/** The rejected records that are meant. Times are in milliseconds since 1970, of the rejection. */
export type RejectFilter = z.output<typeof filterSchema>;

/** Adds the options of `parseFilter`. */
export function withFilters(command: Command): Command {
  return command
    .option('--code <code>', 'only with this error code')
    .option('--source <topic>', 'only of this topic')
    .option('--since <time>', 'rejected at this time or later: ISO time with a zone')
    .option('--until <time>', 'rejected at this time or earlier: ISO time with a zone');
}

/** Throws an error that names every invalid option. */
export const parseFilter = (options: object): RejectFilter => parseOptions(filterSchema, options);

export function matches({ code, atMs, place }: StoredReject, filter: RejectFilter): boolean {
  if (filter.code !== undefined && filter.code !== code) return false;
  if (filter.source !== undefined && filter.source !== place?.topic) return false;
  if (filter.since !== undefined && atMs < filter.since) return false;
  return filter.until === undefined || atMs <= filter.until;
}

/** Visits the rejected records that are in the topic at the start. */
export function readRejects(
  kafka: Kafka,
  prefix: string,
  which: { sinceMs?: number | undefined; only?: { partition: number; offset: number }[] },
  visit: (reject: StoredReject) => Promise<void>,
): Promise<void> {
  return readTopic(kafka, {
    ...which,
    topic: topicNames(prefix, [], []).ingestRejected,
    groupId: `${prefix}admin-${randomUUID()}`,
    logger: silent(),
    visit: (record) => visit(readReject(record)),
  });
}
