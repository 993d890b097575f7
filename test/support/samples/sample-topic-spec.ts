import type { TopicSpec } from '@posthorn/domain/records/topics.ts';

const HOUR_MS = 3_600_000;

/** Keeps its records for an hour. */
export function sampleTopicSpec(name: string): TopicSpec {
  return { name, retentionMs: HOUR_MS, leastRetentionMs: HOUR_MS, segmentMs: HOUR_MS };
}
