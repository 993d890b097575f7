import { NO_COMPANY } from '@posthorn/domain/audit.ts';
import { awaitsAttempt, type DeliveryState } from '@posthorn/domain/delivery/delivery.ts';
import { readTopics } from '@posthorn/platform/kafka/connect.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createKafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import { connectMongo, mongoTlsOf } from '@posthorn/platform/mongo/connect.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import {
  createDeliveryStore,
  type DeliveryStore,
} from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { createResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { createRecordAdmin, type OutputOptions, printResult } from './command.ts';
import {
  findLetter,
  type Letter,
  type Letters,
  lettersConfig,
  matchesFilter,
  openLetters,
  parseSelection,
  type Selection,
  silent,
} from './letters.ts';
import { createResendLetters, type Failure, type ResendLetters } from './resend-letters.ts';

interface ReplayOptions extends OutputOptions {
  dryRun?: boolean;
  all?: boolean;
}

const replayConfig = lettersConfig.extend(settings.mongodb);

/** Replays one letter, those that match, or all. Prints a line for each, or only the counts with `--json`. */
export async function replayDeadLetters(
  id: string | undefined,
  options: ReplayOptions,
): Promise<void> {
  const selection = parseSelection(id, options);
  const config = parseConfig('admin', replayConfig, process.env);
  const isDryRun = options.dryRun ?? false;
  const report = createReplayReport(isDryRun, (letterId, text) => {
    if (!options.json) process.stdout.write(`${letterId}  ${text}\n`);
  });
  const letters = await openLetters(config);
  const mongo = await connectMongo(config.MONGODB_URL, 'posthorn-admin', mongoTlsOf(config));
  try {
    const replay = () => runReplay(letters, mongo.db, { selection, isDryRun, report });
    await (isDryRun ? replay() : recordReplay(mongo.db, selection, report, replay));
  } catch (error) {
    throw new Error(`Stopped after ${JSON.stringify(report.tally())}: ${messageOf(error)}`, {
      cause: error,
    });
  } finally {
    await mongo.close();
  }
  printResult(options, { dryRun: isDryRun, ...report.tally() });
}

interface Run {
  selection: Selection;
  isDryRun: boolean;
  report: ReplayReport;
}

async function runReplay(letters: Letters, db: Database, run: Run): Promise<void> {
  const replay = await openReplay(letters, db, run);
  try {
    await replaySelected(letters, run.selection, replay);
  } finally {
    await replay.close();
  }
}

/** One event for all letters: what was selected, then what was done. Letters may be of many companies. */
function recordReplay(
  db: Database,
  { place, filter }: Selection,
  report: ReplayReport,
  replay: () => Promise<void>,
): Promise<void> {
  const fields = { filter: place ? null : JSON.stringify(filter) };
  const id = place && `${place.partition}:${place.offset}`;
  const target = { kind: 'deadLetters' as const, id };
  return createRecordAdmin(db)(
    { companyId: NO_COMPANY, action: 'dead_letters.replayed', target, fields },
    replay,
    () => ({ ...fields, ...report.tally() }),
  );
}

async function replaySelected(letters: Letters, selection: Selection, run: Replay): Promise<void> {
  const { place, filter } = selection;
  if (place) await run.add(await findLetter(letters, place));
  else {
    await letters.read({ sinceMs: filter.since }, async (letter) => {
      if (matchesFilter(letter, filter, letters.prefix)) await run.add(letter);
    });
  }
  await run.finish();
}

interface OpenReplay extends Replay {
  close: () => Promise<void>;
}

async function openReplay(
  { kafka }: Letters,
  db: Database,
  { isDryRun, report }: Pick<Run, 'isDryRun' | 'report'>,
): Promise<OpenReplay> {
  const topics = new Set((await readTopics(kafka)).keys());
  const records = await createKafkaRecordLog({
    kafka,
    instanceId: randomUUID(),
    logger: silent(),
    metrics: createKafkaMetrics(new Registry()),
    onFatal: () => undefined,
  });
  const replay = createReplay({
    report,
    republish: createRepublishLetters({
      isDryRun,
      report,
      topics,
      deliveries: createDeliveryStore(db),
      records,
    }),
    resend: createResendLetters({
      isDryRun,
      report,
      resends: createResendStore(db),
      marks: createResendMarks(db),
      findWebhook: (companyId, _id) => documentsOf(db, 'webhooks', companyId).findOne({ _id }),
      newId: systemIds,
      nowMs: systemClockMs,
    }),
  });
  return { ...replay, close: records.close };
}

interface ReplayDeps {
  report: ReplayReport;
  republish: (letters: readonly Letter[]) => Promise<void>;
  resend: ResendLetters;
}

interface Replay {
  /** Adds a letter, and replays the letters that were added once they are enough for one batch. */
  add: (letter: Letter) => Promise<void>;
  /** Replays the rest. */
  finish: () => Promise<void>;
}

/** Sizes of a batch. Unreadable records are held whole, failed deliveries by their ids only. */
const MAX_RECORDS = 500;
const MAX_RECORD_BYTES = 8_388_608;
const MAX_FAILURES = 10_000;

/**
 * Replays letters: publishes unreadable records to their own topics again, and resends deliveries that
 * failed for good, as the API does.
 */
export function createReplay({ report, republish, resend }: ReplayDeps): Replay {
  const records = createBatch<Letter>(
    { count: MAX_RECORDS, bytes: MAX_RECORD_BYTES },
    ({ record }) => record.value.length,
    republish,
  );
  const failures = createBatch<Failure>({ count: MAX_FAILURES, bytes: Infinity }, () => 0, resend);

  async function addFailure({ id, content }: Letter): Promise<void> {
    if (!content) {
      report.skipped(id, 'unreadable_record');
      return;
    }
    const { companyId, webhookId, deliveryId } = content;
    await failures.add({ letterId: id, companyId, webhookId, deliveryId });
  }

  return {
    async add(letter) {
      report.matched();
      if (isRecord(letter)) await records.add(letter);
      else if (isFailure(letter)) await addFailure(letter);
      else report.skipped(letter.id, 'unknown_reason');
    },
    async finish() {
      await records.flush();
      await failures.flush();
    },
  };
}

interface Batch<T> {
  add: (item: T) => Promise<void>;
  flush: () => Promise<void>;
}

function createBatch<T>(
  most: { count: number; bytes: number },
  bytesOf: (item: T) => number,
  work: (items: readonly T[]) => Promise<void>,
): Batch<T> {
  let items: T[] = [];
  let bytes = 0;
  async function flush(): Promise<void> {
    const batch = items;
    [items, bytes] = [[], 0];
    if (batch.length > 0) await work(batch);
  }
  return {
    async add(item) {
      items.push(item);
      bytes += bytesOf(item);
      if (items.length >= most.count || bytes >= most.bytes) await flush();
    },
    flush,
  };
}

/** True if the record was not processed. Its reader checks it again: a replay proves nothing. */
function isRecord({ reason }: Letter): boolean {
  return ['unreadable_record', 'unproven_record', 'company_mismatch'].includes(reason);
}

/** True if the letter is of a delivery in a final state. */
function isFailure({ reason }: Letter): boolean {
  return reason === 'schedule_exhausted' || reason === 'message_missing';
}

/** Why a letter was not replayed. */
export type SkipReason =
  | 'cut'
  | 'unknown_source_topic'
  | 'source_topic_missing'
  | 'moved_on'
  | 'unreadable_record'
  | 'unknown_reason'
  | 'repeated'
  | 'not_stored'
  | 'delivered'
  | 'pending'
  | 'resend_running'
  | 'webhook_deleted'
  | 'webhook_disabled';

interface ReplayTally {
  matched: number;
  /** Records that were published to their own topic again. */
  republished: number;
  /** Deliveries that get one more attempt. */
  resent: number;
  skipped: Partial<Record<SkipReason, number>>;
}

/** Counts what happens to each letter, and prints a line about it. */
export interface ReplayReport {
  matched: () => void;
  republished: (letterId: string, topic: string) => void;
  /** `resendId` is null in a dry run. */
  resent: (letterId: string, deliveryId: string, resendId: string | null) => void;
  skipped: (letterId: string, reason: SkipReason) => void;
  tally: () => ReplayTally;
}

export function createReplayReport(
  isDryRun: boolean,
  note: (letterId: string, text: string) => void,
): ReplayReport {
  const tally: ReplayTally = { matched: 0, republished: 0, resent: 0, skipped: {} };
  const done = isDryRun ? 'would be' : 'was';
  return {
    matched() {
      tally.matched += 1;
    },
    republished(letterId, topic) {
      tally.republished += 1;
      note(letterId, `record ${done} published again to ${topic}`);
    },
    resent(letterId, deliveryId, resendId) {
      tally.resent += 1;
      const by = resendId === null ? '' : ` by ${resendId}`;
      note(letterId, `one more attempt ${done} asked for${by}: ${deliveryId}`);
    },
    skipped(letterId, reason) {
      tally.skipped[reason] = (tally.skipped[reason] ?? 0) + 1;
      note(letterId, `skipped: ${reason}`);
    },
    tally: () => structuredClone(tally),
  };
}

interface RepublishLettersDeps {
  isDryRun: boolean;
  report: ReplayReport;
  /** The topics that exist. */
  topics: ReadonlySet<string>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
}

/** Publishes the records of letters unchanged to their own topics, where a fixed or later version can read them. */
export function createRepublishLetters(deps: RepublishLettersDeps) {
  const { isDryRun, report, deliveries, records } = deps;
  return async (letters: readonly Letter[]): Promise<void> => {
    const ids = letters.flatMap(({ content }) => content?.deliveryId ?? []);
    const states = await deliveries.statesOf(ids);
    const wanted = letters.filter((letter) => {
      const reason = skipReasonOf(deps, letter, states);
      if (reason) report.skipped(letter.id, reason);
      return reason === null;
    });
    if (!isDryRun) {
      await records.publish(
        wanted.map(({ source, record }) => ({ topic: source.topic, ...record })),
      );
    }
    for (const { id, source } of wanted) report.republished(id, source.topic);
  };
}

function skipReasonOf(
  { topics }: RepublishLettersDeps,
  { cutFromBytes, hasKnownSource, source, content }: Letter,
  states: ReadonlyMap<string, DeliveryState>,
): SkipReason | null {
  if (cutFromBytes !== null) return 'cut';
  if (!hasKnownSource) return 'unknown_source_topic';
  if (!topics.has(source.topic)) return 'source_topic_missing';
  // A record that is readable now may have been replayed before: an attempt is not made twice.
  const isDue =
    !content || awaitsAttempt(states.get(content.deliveryId), content.nextAttemptNumber);
  return isDue ? null : 'moved_on';
}
