import { READER_REASONS, type ReaderReport } from '@posthorn/domain/ingest-lag.ts';
import { keyOf, type TopicPartition } from '../kafka/record-log.ts';
import { readAll, type RedisCommand, sendAll } from './commands.ts';
import type { RedisClient } from './connect.ts';

/** What the processes that ingest report about the partitions that they read, for whoever shows the lag. */
export interface IngestReports {
  /** Stores these reports, without waiting for Redis; while Redis is away nothing is stored. */
  report: (cluster: string, reports: readonly PartitionReport[]) => void;
  /** Returns the reports of the last seconds, by `keyOf` of the partition. Rejects without Redis. */
  read: (
    cluster: string,
    partitions: readonly TopicPartition[],
  ) => Promise<ReadonlyMap<string, ReaderReport>>;
}

export interface PartitionReport extends TopicPartition {
  report: ReaderReport;
}

/** A process repeats its reports after this time. */
export const REPEAT_REPORTS_MS = 2_000;
/** An older report is of a process that is gone, or of a wait that is over. Redis forgets it, so that no clocks are compared. */
const VALID_MS = 10_000;
/** Of one process at a time: 100 KB every two seconds. */
export const MAX_REPORTED = 1_000;

/** Uses one key for each partition, which expires. A value is `<reason>/<per second>`. `cluster` is that of `clusterOf`. */
export function createIngestReports(redis: RedisClient, prefix: string): IngestReports {
  const keyIn = (cluster: string, partition: TopicPartition): string =>
    `${prefix}ingest-reports:${cluster}/${keyOf(partition)}`;
  return {
    report(cluster, reports) {
      const commands = reports.slice(0, MAX_REPORTED).map((each): RedisCommand => {
        const { reason, perSecond } = each.report;
        const value = `${reason}/${perSecond.toFixed(1)}`;
        return ['set', keyIn(cluster, each), value, 'PX', VALID_MS];
      });
      if (commands.length > 0) void sendAll(redis, commands).catch(() => undefined);
    },
    async read(cluster, partitions) {
      if (partitions.length === 0) return new Map();
      const keys = partitions.map((each) => keyIn(cluster, each));
      const values = await readAll(redis, keys);
      return new Map(
        partitions.flatMap((partition, n): [string, ReaderReport][] => {
          const report = parse(values[n] ?? '');
          return report ? [[keyOf(partition), report]] : [];
        }),
      );
    },
  };
}

/** Returns null for a value that a process of another version has reported. */
function parse(value: string): ReaderReport | null {
  const [name, perSecond] = value.split('/');
  const reason = READER_REASONS.find((each) => each === name);
  return reason ? { reason, perSecond: Number(perSecond) } : null;
}
