import { clusterOf, type IngestSource } from '@posthorn/domain/ingest.ts';
import { type KafkaAccess, kafkaAccessOf } from '@posthorn/platform/kafka/connect.ts';
import type { IngestConfig } from '../config.ts';

/** The clusters of the sources; the installation's own is first, as ''. */
export function clustersOf(sources: readonly IngestSource[], hasCompanyTopics: boolean): string[] {
  const own = hasCompanyTopics ? [''] : [];
  return [...new Set([...own, ...sources.map(clusterOf)])].toSorted();
}

/** Returns how a cluster other than the installation's is reached. */
export function accessOfCluster(config: IngestConfig, cluster: string): KafkaAccess {
  return { ...kafkaAccessOf(config), brokers: cluster.split(',') };
}
