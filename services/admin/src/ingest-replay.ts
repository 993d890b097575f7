import { firstIdAt } from '@posthorn/domain/ids.ts';
import {
  CE_ID_HEADER,
  CE_SOURCE_HEADER,
  cloudEventKeyOf,
  IDEMPOTENCY_KEY_HEADER,
  type IngestPlace,
  type IngestSource,
  type NamedSource,
  placeKeyOf,
} from '@posthorn/domain/ingest.ts';
import { readTopics, withAdmin } from '@posthorn/platform/kafka/connect.ts';
import type { KafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { CopiedRecord } from '@posthorn/platform/kafka/record-log.ts';
import { documentsIn } from '@posthorn/platform/mongo/company-documents.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { readAll } from '@posthorn/platform/mongo/days/read-days.ts';
import type { StoredReject } from '@posthorn/platform/records/ingest-rejects.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import { parseOptions } from './command.ts';
import {
  type Clusters,
  ingestConfig,
  matches,
  openClusters,
  parseFilter,
  readRejects,
  type RejectFilter,
} from './ingest-topics.ts';
import {
  type Batch,
  createBatch,
  MOST_RECORDS,
  openLog,
  type ReplayOptions,
  type ReplayReport,
  runReplay,
} from './run-replay.ts';

const replayConfig = ingestConfig.extend(settings.mongodb);

interface RejectOptions extends ReplayOptions {
  code?: string;
  source?: string;
  since?: string;
  until?: string;
  partition?: string;
  offset?: string;
}

const placeSchema = z.object({
  partition: z.coerce.number().int().min(0).max(999_999),
  offset: z.coerce.number().int().min(0),
});

/** The rejected records to replay: one, or all that match. */
interface Selection {
  only: { partition: number; offset: number } | null;
  filter: RejectFilter;
}

/** Throws unless `--all` or a place is given. */
export function parseReplay({ all, partition, offset, ...options }: RejectOptions): Selection {
  const filter = parseFilter(options);
  const [name] = Object.entries(filter).find(([, value]) => value !== undefined) ?? [];
  const hasPlace = partition !== undefined || offset !== undefined;
  if (hasPlace === (all === true)) {
    throw new Error('Give --all, or --partition and --offset of one rejected record.');
  }
  if (hasPlace && name !== undefined) throw new Error(`--${name} goes with --all only.`);
  return { only: hasPlace ? parseOptions(placeSchema, { partition, offset }) : null, filter };
}

/** Why a rejected record was not written again. */
type SkipReason =
  /** Its value was too large for the topic of rejected records, which has the beginning only. */
  | 'cut'
  /** Its topic is no source of INGEST_SOURCES, or of another cluster than those. */
  | 'unknown_source'
  | 'source_topic_missing'
  /** Another rejected record of the same replay has its key: an earlier replay wrote it again, and it was rejected again. */
  | 'repeated'
  /** A message was accepted with its key since it was rejected. */
  | 'accepted';

/** Writes rejected records into their topics again, each with the idempotency key that it had there. */
export function replayRejected(options: RejectOptions): Promise<void> {
  const selection = parseReplay(options);
  const { only, filter } = selection;
  return runReplay({
    options,
    ways: ['replayed'],
    schema: replayConfig,
    event: {
      action: 'ingest_rejects.replayed',
      target: { kind: 'ingestRejects', id: only && placeText(only) },
      fields: { filter: only ? null : JSON.stringify(filter) },
    },
    async open(config) {
      const clusters = await openClusters(config);
      return async (db, report) => {
        const targets = await openTargets(clusters);
        const replay = createReplay({ targets, db, report });
        try {
          const which = only ? { only: [only] } : { sinceMs: filter.since };
          await readRejects(clusters.own, config.TOPIC_PREFIX, which, async (reject) => {
            if (matches(reject, filter)) await replay.add(reject);
          });
          await replay.flush();
        } finally {
          await Promise.all([...targets.values()].map(({ log }) => log.close()));
        }
      };
    },
  });
}

const placeText = ({ partition, offset }: { partition: number; offset: number | string }): string =>
  `${partition}:${offset}`;

/** A cluster with the topics that can be written again. */
interface Target {
  sources: ReadonlyMap<string, NamedSource>;
  existing: ReadonlyMap<string, number>;
  log: KafkaRecordLog;
}

/** By the id that a cluster reports. */
type Targets = ReadonlyMap<string, Target>;

async function openTargets({ all, sourcesIn }: Clusters): Promise<Targets> {
  const targets = new Map<string, Target>();
  for (const { cluster, kafka } of all) {
    const { clusterId } = await withAdmin(kafka, {}, (admin) => admin.describeCluster());
    const existing = await readTopics(kafka);
    const sources = sourcesIn(cluster, existing.keys());
    targets.set(clusterId, { sources, existing, log: await openLog(kafka) });
  }
  return targets;
}

interface ReplayDeps {
  targets: Targets;
  db: Database;
  report: ReplayReport;
}

function createReplay({ targets, db, report }: ReplayDeps): Batch<StoredReject> {
  /** Companies with keys. */
  const seen = new Set<string>();
  const skip = (reject: StoredReject, reason: SkipReason): void => {
    report.skipped(placeText(reject), reason);
  };
  const batch = createBatch<Wanted>(
    MOST_RECORDS,
    ({ reject }) => reject.record.value?.length ?? 0,
    async (found) => {
      const accepted = await acceptedAmong(db, found);
      for (const { reject } of accepted) skip(reject, 'accepted');
      const wanted = found.filter((each) => !accepted.has(each));
      if (!report.isDryRun) {
        for (const [target, ofTarget] of Map.groupBy(wanted, (each) => each.target)) {
          await target.log.publishCopies(ofTarget.map(toCopy));
        }
      }
      for (const { reject, place } of wanted) {
        report.replayed(
          'replayed',
          placeText(reject),
          (was) => `${was} written to ${place.topic} again`,
        );
      }
    },
  );
  return {
    ...batch,
    async add(reject) {
      report.matched();
      const found = wantedOf(reject, targets);
      if (typeof found === 'string') {
        skip(reject, found);
        return;
      }
      const identity = `${found.source.companyId}/${found.key}`;
      if (seen.has(identity)) {
        skip(reject, 'repeated');
        return;
      }
      seen.add(identity);
      await batch.add(found);
    },
  };
}

/** A rejected record that can be written again, and where to. */
interface Wanted {
  reject: StoredReject;
  place: IngestPlace;
  source: IngestSource;
  target: Target;
  key: string;
}

function wantedOf(reject: StoredReject, targets: ReadonlyMap<string, Target>): Wanted | SkipReason {
  const { place, cutFromBytes } = reject;
  if (cutFromBytes !== null) return 'cut';
  const target = place && targets.get(place.clusterId);
  if (!target) return 'unknown_source';
  if (!target.existing.has(place.topic)) return 'source_topic_missing';
  const source = target.sources.get(place.topic);
  if (!source) return 'unknown_source';
  return { reject, place, source, target, key: keyOf(reject, place) };
}

/** The idempotency key with which the record is accepted, wherever it is written again. */
function keyOf({ record }: StoredReject, place: IngestPlace): string {
  const read = (name: string): string | undefined => record.headers?.[name]?.toString();
  const event = cloudEventKeyOf(read(CE_SOURCE_HEADER), read(CE_ID_HEADER));
  return read(IDEMPOTENCY_KEY_HEADER) ?? event ?? placeKeyOf(place);
}

function toCopy({ reject, place, key }: Wanted): CopiedRecord {
  const { record } = reject;
  // At another offset it would have another key, and a repeated replay would be accepted twice.
  const headers = { ...record.headers, [IDEMPOTENCY_KEY_HEADER]: key };
  return { topic: place.topic, ...record, headers };
}

/**
 * Returns those whose key has a message that was made since they were rejected. A key counts for 24 hours; messages are
 * kept for longer, so that a replay that is repeated after a week repeats no message.
 */
async function acceptedAmong(db: Database, all: readonly Wanted[]): Promise<Set<Wanted>> {
  const accepted = new Set<Wanted>();
  for (const [companyId, ofCompany] of Map.groupBy(all, ({ source }) => source.companyId)) {
    const sinceMs = Math.min(...ofCompany.map(({ reject }) => reject.atMs));
    const byKey = { 'idempotency.key': { $in: ofCompany.map(({ key }) => key) } };
    const days = db.days.messages.within({ fromId: firstIdAt('msg', sinceMs) });
    const found = await readAll(days, (documents) =>
      documentsIn<'messages'>(documents, companyId)
        .find(byKey)
        .project<{ createdAt: Date; idempotency: { key: string } }>({
          createdAt: 1,
          'idempotency.key': 1,
        })
        .toArray(),
    );
    const madeAtMs = new Map(
      found.flat().map(({ idempotency, createdAt }) => [idempotency.key, createdAt.getTime()]),
    );
    for (const each of ofCompany) {
      if ((madeAtMs.get(each.key) ?? -Infinity) >= each.reject.atMs) accepted.add(each);
    }
  }
  return accepted;
}
