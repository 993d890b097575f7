import { NO_COMPANY } from '@posthorn/domain/audit.ts';
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
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import {
  createKafkaRecordLog,
  type KafkaRecordLog,
} from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { CopiedRecord } from '@posthorn/platform/kafka/record-log.ts';
import { documentsIn } from '@posthorn/platform/mongo/company-documents.ts';
import { connectMongo, mongoTlsOf } from '@posthorn/platform/mongo/connect.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { readAll } from '@posthorn/platform/mongo/days/read-days.ts';
import type { StoredReject } from '@posthorn/platform/records/ingest-rejects.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createRecordAdmin, parseOptions } from './command.ts';
import { type Clusters, ingestConfig, openClusters, readRejects } from './ingest-topics.ts';
import { silent } from './letters.ts';
import { type OutputOptions, printResult } from './output.ts';

const replayConfig = ingestConfig.extend(settings.mongodb);

export interface ReplayOptions extends OutputOptions {
  all?: boolean;
  code?: string;
  partition?: string;
  offset?: string;
  dryRun?: boolean;
}

const placeSchema = z.object({
  partition: z.coerce.number().int().min(0).max(999_999),
  offset: z.coerce.number().int().min(0),
});

/** The rejected records to replay: one, or those with a code, or all. */
interface Selection {
  only: { partition: number; offset: number } | null;
  code: string | undefined;
}

/** Throws unless `--all` or a place is given. */
export function parseReplay({ all, code, partition, offset }: ReplayOptions): Selection {
  const hasPlace = partition !== undefined || offset !== undefined;
  if (hasPlace === (all === true)) {
    throw new Error('Give --all, or --partition and --offset of one rejected record.');
  }
  if (hasPlace && code !== undefined) throw new Error('--code goes with --all only.');
  return { only: hasPlace ? parseOptions(placeSchema, { partition, offset }) : null, code };
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

interface ReplayTally {
  matched: number;
  replayed: number;
  skipped: Partial<Record<SkipReason, number>>;
}

/** Writes rejected records into their topics again, each with the idempotency key that it had there. */
export async function replayRejected(options: ReplayOptions): Promise<void> {
  const selection = parseReplay(options);
  const config = parseConfig('admin', replayConfig, process.env);
  const isDryRun = options.dryRun ?? false;
  const tally: ReplayTally = { matched: 0, replayed: 0, skipped: {} };
  const note = (reject: StoredReject, text: string): void => {
    if (options.json) return;
    process.stdout.write(`${reject.partition}:${reject.offset}  ${text}\n`);
  };
  const clusters = await openClusters(config);
  const mongo = await connectMongo(config.MONGODB_URL, 'posthorn-admin', mongoTlsOf(config));
  const replay = async (): Promise<void> => {
    const targets = await openTargets(clusters);
    const run = new Replay({ targets, db: mongo.db, isDryRun, tally, note });
    try {
      const which = { ...(selection.only && { only: [selection.only] }) };
      await readRejects(clusters.own, config.TOPIC_PREFIX, which, async (reject) => {
        if (selection.code === undefined || reject.code === selection.code) await run.add(reject);
      });
      await run.flush();
    } finally {
      await Promise.all([...targets.values()].map(({ log }) => log.close()));
    }
  };
  try {
    await (isDryRun ? replay() : recordReplay(mongo.db, selection, tally, replay));
  } catch (error) {
    throw new Error(`Stopped after ${JSON.stringify(tally)}: ${messageOf(error)}`, {
      cause: error,
    });
  } finally {
    await mongo.close();
  }
  printResult(options, { dryRun: isDryRun, ...tally });
}

/** One event for all of them: what was selected, then what was done. They may be of many companies. */
function recordReplay(
  db: Database,
  { only, code }: Selection,
  tally: ReplayTally,
  replay: () => Promise<void>,
): Promise<void> {
  const id = only && `${only.partition}:${only.offset}`;
  const fields = { code: code ?? null };
  return createRecordAdmin(db)(
    {
      companyId: NO_COMPANY,
      action: 'ingest_rejects.replayed',
      target: { kind: 'ingestRejects', id },
      fields,
    },
    replay,
    () => ({ ...fields, ...tally }),
  );
}

/** Records are held whole until they are written. */
const BATCH = { records: 500, bytes: 8_388_608 };

interface ReplayDeps {
  targets: Targets;
  db: Database;
  isDryRun: boolean;
  tally: ReplayTally;
  note: (reject: StoredReject, text: string) => void;
}

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

class Replay {
  readonly #deps: ReplayDeps;
  /** Companies with keys. */
  readonly #seen = new Set<string>();
  #batch: Wanted[] = [];
  #bytes = 0;

  constructor(deps: ReplayDeps) {
    this.#deps = deps;
  }

  async add(reject: StoredReject): Promise<void> {
    this.#deps.tally.matched += 1;
    const found = wantedOf(reject, this.#deps.targets);
    if (typeof found === 'string') {
      this.#skip(reject, found);
      return;
    }
    const identity = `${found.source.companyId}/${found.key}`;
    if (this.#seen.has(identity)) {
      this.#skip(reject, 'repeated');
      return;
    }
    this.#seen.add(identity);
    this.#batch.push(found);
    this.#bytes += reject.record.value?.length ?? 0;
    if (this.#batch.length >= BATCH.records || this.#bytes >= BATCH.bytes) await this.flush();
  }

  /** Writes the records that are left. */
  async flush(): Promise<void> {
    const { db, isDryRun, tally, note } = this.#deps;
    const batch = this.#batch;
    [this.#batch, this.#bytes] = [[], 0];
    const accepted = await acceptedAmong(db, batch);
    for (const each of accepted) this.#skip(each.reject, 'accepted');
    const wanted = batch.filter((each) => !accepted.has(each));
    if (!isDryRun) {
      for (const [target, ofTarget] of Map.groupBy(wanted, (each) => each.target)) {
        await target.log.publishCopies(ofTarget.map(toCopy));
      }
    }
    for (const { reject, place } of wanted) {
      tally.replayed += 1;
      note(reject, `${isDryRun ? 'would be' : 'was'} written to ${place.topic} again`);
    }
  }

  #skip(reject: StoredReject, reason: SkipReason): void {
    const { tally, note } = this.#deps;
    tally.skipped[reason] = (tally.skipped[reason] ?? 0) + 1;
    note(reject, `skipped: ${reason}`);
  }
}

function openLog(kafka: Kafka): Promise<KafkaRecordLog> {
  return createKafkaRecordLog({
    kafka,
    instanceId: randomUUID(),
    logger: silent(),
    metrics: createKafkaMetrics(new Registry()),
    onFatal: () => undefined,
  });
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
