/*
 * Why records of a partition of a source wait (docs/ingest.md). The process that reads the partition knows most reasons and
 * reports them; the group in Kafka knows whether there is such a process.
 */

/** The reasons that the process which reads a partition knows. */
export const READER_REASONS = [
  'backlog',
  'company_suspended',
  'rate_limited',
  'store_unavailable',
  'waiting_for_budget',
  'key_in_use',
  'clock_wrong',
  'rebalancing',
] as const;

export type ReaderReason = (typeof READER_REASONS)[number];

/** The reasons for which records that were read are tried again: all but those of the process as a whole. */
export type RetryReason = Exclude<ReaderReason, 'backlog' | 'rebalancing'>;

export const LAG_REASONS = ['no_process', 'no_reader', ...READER_REASONS, 'unknown'] as const;

export type LagReason = (typeof LAG_REASONS)[number];

/** What a process reports about a partition that it reads. */
export interface ReaderReport {
  reason: ReaderReason;
  /** How many records of the partition were finished per second since the report before. */
  perSecond: number;
}

/** One sentence about each reason, for people. */
export const LAG_SENTENCES: Readonly<Record<LagReason, string>> = {
  no_process: 'No process of posthorn ingest runs in this cluster.',
  no_reader:
    'Processes of posthorn ingest run, and none of them reads this partition: compare their INGEST_SOURCES.',
  backlog: 'Its records are being read.',
  company_suspended: 'Its company is suspended.',
  rate_limited: 'Its company has reached RATE_LIMIT_COMPANY_PER_MINUTE.',
  store_unavailable: 'MongoDB does not store its messages.',
  waiting_for_budget:
    'Its company has as many records or bytes in the process as it may, in other partitions or in messages that are being stored.',
  key_in_use: 'A request with the idempotency key of its next record is not decided yet.',
  clock_wrong: 'The clock of the process or of MongoDB is wrong.',
  rebalancing: 'The processes of posthorn ingest are sharing out the partitions.',
  unknown: 'Its process reports nothing: it has begun just now, or Redis does not answer.',
};

/** Returns the sentence, of a backlog with its speed. */
export function sentenceOfLag({ reason, perSecond }: LagCause): string {
  if (reason !== 'backlog') return LAG_SENTENCES[reason];
  return `${LAG_SENTENCES.backlog.slice(0, -1)}, ${Math.round(perSecond)} per second.`;
}

/** The group of a cluster as Kafka describes it. */
export type GroupState = 'empty' | 'changing' | 'stable';

export interface LagCause {
  reason: LagReason;
  /** 0 unless its process reports otherwise. */
  perSecond: number;
}

interface PartitionFacts {
  group: GroupState;
  /** True when a member of the group has the partition. */
  isOwned: boolean;
  /** Null when its process has reported nothing lately. */
  report: ReaderReport | null;
}

/** Returns why the records of a partition that has some wait. A report of a former owner does not count. */
export function causeOfLag({ group, isOwned, report }: PartitionFacts): LagCause {
  const because = (reason: LagReason): LagCause => ({ reason, perSecond: 0 });
  if (group === 'empty') return because('no_process');
  if (group === 'changing') return because('rebalancing');
  if (!isOwned) return because('no_reader');
  return report ?? because('unknown');
}

/** A partition as the process that reads it sees it. */
export interface ReadPartition {
  /** Why its records, or those of another partition of its source, could not be accepted the last time; null otherwise. */
  retried: RetryReason | null;
  /** Records that are read and not finished. */
  inFlight: boolean;
  /** False while the company holds as much of the process as it may. */
  hasRoom: boolean;
  areStoresUp: boolean;
  /** False while the group changes, and nothing may be begun. */
  isSteady: boolean;
  perSecond: number;
}

/** Returns what its process reports about a partition; null when there is nothing to report. */
export function reportOf(of: ReadPartition): ReaderReport | null {
  const { perSecond } = of;
  if (of.retried) return { reason: of.retried, perSecond };
  if (!of.isSteady) return of.inFlight ? { reason: 'rebalancing', perSecond } : null;
  if (of.inFlight || perSecond > 0) return { reason: 'backlog', perSecond };
  if (!of.areStoresUp) return { reason: 'store_unavailable', perSecond };
  return of.hasRoom ? null : { reason: 'waiting_for_budget', perSecond };
}
