import { clusterOf, type IngestSource } from '@posthorn/domain/ingest.ts';

/** The clusters of the sources; the installation's own is first, as ''. */
export function clustersOf(sources: readonly IngestSource[], hasCompanyTopics: boolean): string[] {
  const own = hasCompanyTopics ? [''] : [];
  return [...new Set([...own, ...sources.map(clusterOf)])].toSorted();
}
