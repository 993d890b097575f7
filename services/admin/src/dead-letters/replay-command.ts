import { randomUUID } from 'node:crypto';
import { NO_COMPANY } from '@posthorn/domain/audit/audit-event.ts';
import { parseConfig } from '@posthorn/platform/service/settings/config.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { readTopics } from '@posthorn/platform/kafka/connection/connect.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createKafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import { connectMongo, mongoTlsOf } from '@posthorn/platform/mongo/connection/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import { createResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { Registry } from 'prom-client';
import { createRecordAdmin } from '../audit/record-admin.ts';
import { printResult, type OutputOptions } from '../output.ts';
import { matchesFilter, parseSelection, type Selection } from './letter-filter.ts';
import { findLetter, lettersConfig, openLetters, silent, type Letters } from './open-letters.ts';
import { createReplay, type Replay } from './replay-letters.ts';
import { createReplayReport, type ReplayReport } from './replay-report.ts';
import { createRepublishLetters } from './republish-letters.ts';
import { createResendLetters } from './resend-letters.ts';

export interface ReplayOptions extends OutputOptions {
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
