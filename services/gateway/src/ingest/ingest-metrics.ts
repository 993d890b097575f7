import { COMPANY_TOPICS, REJECT_CODES, type RejectCode } from '@posthorn/domain/ingest.ts';
import type { KafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import type { ReadyRecords } from '@posthorn/platform/kafka/record-log.ts';
import { Counter, Gauge, type Registry } from 'prom-client';

export interface IngestMetrics {
  accepted: (source: string, counts: { isNew: number; repeated: number }) => void;
  rejected: (source: string, code: RejectCode, count: number) => void;
  /** A partition of the source ended before what was read of it. */
  endLost: (source: string) => void;
}

interface ShownIngest {
  /** The names of all sources, see NamedSource. */
  sources: readonly string[];
  /** By the name of the source: the records in the partitions of this process that are not finished. */
  ready: () => ReadonlyMap<string, ReadyRecords>;
  nowMs: () => number;
}

/** `source` is a topic of INGEST_SOURCES, or the name of all company topics. */
export function createIngestMetrics(registry: Registry, shown: ShownIngest): IngestMetrics {
  const { sources } = shown;
  const registers = [registry];
  const accepted = new Counter({
    name: 'posthorn_ingest_accepted_total',
    help: 'Records of a source that were accepted as messages.',
    labelNames: ['source'],
    registers,
  });
  const repeated = new Counter({
    name: 'posthorn_ingest_repeated_total',
    help: 'Records of a source whose idempotency key had a message already, as after a crash between its store and the commit of the offset.',
    labelNames: ['source'],
    registers,
  });
  const rejected = new Counter({
    name: 'posthorn_ingest_rejected_total',
    help: 'Records of a source that were published to the topic of rejected records, by the error code.',
    labelNames: ['source', 'code'],
    registers,
  });
  const endsLost = new Counter({
    name: 'posthorn_ingest_ends_lost_total',
    help: 'How often a partition of a source ended before what was read of it: records may be lost, and reading goes on at its end.',
    labelNames: ['source'],
    registers,
  });
  for (const source of sources) {
    endsLost.inc({ source }, 0);
    accepted.inc({ source }, 0);
    repeated.inc({ source }, 0);
    for (const code of REJECT_CODES) rejected.inc({ source, code }, 0);
  }
  showLag(registry, shown);
  return {
    accepted(source, counts) {
      accepted.inc({ source }, counts.isNew);
      repeated.inc({ source }, counts.repeated);
    },
    rejected: (source, code, count) => {
      rejected.inc({ source, code }, count);
    },
    endLost: (source) => {
      endsLost.inc({ source });
    },
  };
}

function showLag(registry: Registry, { sources, ready, nowMs }: ShownIngest): void {
  const gauge = (name: string, help: string, valueOf: (of: ReadyRecords) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['source'],
      registers: [registry],
      collect() {
        const found = ready();
        for (const source of sources) this.set({ source }, valueOf(found.get(source) ?? NONE));
      },
    });
  };
  gauge(
    'posthorn_ingest_lag_records',
    'Records of a source in the partitions of this process that are neither accepted nor rejected.',
    ({ records }) => records,
  );
  gauge(
    'posthorn_ingest_lag_seconds',
    'Age of the oldest record of a source in the partitions of this process that is neither accepted nor rejected; 0 when there is none.',
    ({ oldestMs }) => Math.max(0, nowMs() - oldestMs) / 1_000,
  );
}

const NONE: ReadyRecords = { records: 0, oldestMs: Infinity };

/** Returns the names of the sources in metrics. */
export function sourceNames(topics: readonly string[], hasCompanyTopics: boolean): string[] {
  return [...new Set([...topics, ...(hasCompanyTopics ? [COMPANY_TOPICS] : [])])];
}

/**
 * Returns the metrics of a consumer of sources: without those that have a topic as their label, which may have the id of
 * a company in it. `show` is called for each consumer, also for one that replaces another.
 */
export function withoutTopics(
  shared: KafkaMetrics,
  show: (member: Parameters<KafkaMetrics['show']>[1]) => void,
): KafkaMetrics {
  const nothing = (): void => undefined;
  return {
    ...shared,
    consumed: { inc: nothing },
    startAtZero: nothing,
    setLag: nothing,
    keepLagOf: nothing,
    setProgress: nothing,
    finishedOf: () => ({ records: 0 }),
    show: (_group, member) => {
      show(member);
    },
  };
}
