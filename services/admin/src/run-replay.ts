import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { NO_COMPANY } from '@posthorn/domain/audit.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import {
  createKafkaRecordLog,
  type KafkaRecordLog,
} from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import type { z } from 'zod';
import {
  type AdminAction,
  createRecordAdmin,
  type databaseConfig,
  runOnDatabase,
} from './command.ts';
import { silent } from './letters.ts';
import type { OutputOptions } from './output.ts';

export interface ReplayOptions extends OutputOptions {
  dryRun?: boolean;
  all?: boolean;
}

/** Counts what happens to each record, and prints a line about it. */
export class ReplayReport {
  readonly isDryRun: boolean;
  readonly #print: (line: string) => void;
  readonly #counts: Record<string, number>;
  readonly #skipped: Record<string, number> = {};

  /** `ways`: how records are replayed, each with a count of its own. */
  constructor(ways: readonly string[], isDryRun: boolean, print: (line: string) => void) {
    this.isDryRun = isDryRun;
    this.#print = print;
    this.#counts = Object.fromEntries(['matched', ...ways].map((each) => [each, 0]));
  }

  matched(): void {
    this.#counts.matched = (this.#counts.matched ?? 0) + 1;
  }

  /** `textOf` gets `was`, or `would be` in a dry run. */
  replayed(way: string, id: string, textOf: (was: string) => string): void {
    this.#counts[way] = (this.#counts[way] ?? 0) + 1;
    this.#print(`${id}  ${textOf(this.isDryRun ? 'would be' : 'was')}`);
  }

  skipped(id: string, reason: string): void {
    this.#skipped[reason] = (this.#skipped[reason] ?? 0) + 1;
    this.#print(`${id}  skipped: ${reason}`);
  }

  tally(): Record<string, unknown> & { skipped: Record<string, number> } {
    return { ...this.#counts, skipped: { ...this.#skipped } };
  }
}

interface ReplayRun<Schema extends typeof databaseConfig> {
  options: ReplayOptions;
  ways: readonly string[];
  schema: Schema;
  /** The selection. Records may be of many companies. */
  event: Omit<AdminAction, 'companyId'>;
  /** Connects to Kafka, and returns what replays the records. */
  open: (
    config: z.infer<Schema>,
  ) => Promise<(db: Database, report: ReplayReport, nowMs: () => number) => Promise<void>>;
}

/**
 * Replays records; unless it is a dry run, that is one event of the audit log. With `--json` it prints the counts only.
 */
export function runReplay<Schema extends typeof databaseConfig>({
  options,
  ways,
  schema,
  event,
  open,
}: ReplayRun<Schema>): Promise<void> {
  const { json = false, dryRun = false } = options;
  const report = new ReplayReport(ways, dryRun, (line) => {
    if (!json) process.stdout.write(`${line}\n`);
  });
  return runOnDatabase(options, schema, async (db, config, { nowMs }) => {
    const replay = await open(config);
    const work = (): Promise<void> => replay(db, report, nowMs);
    const fieldsOf = () => ({ ...event.fields, ...report.tally() });
    const recorded = { ...event, companyId: NO_COMPANY };
    try {
      await (dryRun ? work() : createRecordAdmin(db)(recorded, work, fieldsOf));
    } catch (error) {
      const done = JSON.stringify(report.tally());
      throw new Error(`Stopped after ${done}: ${messageOf(error)}`, { cause: error });
    }
    return { dryRun, ...report.tally() };
  });
}

/** Records are held whole until they are replayed. */
export const MOST_RECORDS = { count: 500, bytes: 8_388_608 };

export interface Batch<Item> {
  add: (item: Item) => Promise<void>;
  /** Works on the items that are left. */
  flush: () => Promise<void>;
}

/** Works on the items that were added once they are enough. */
export function createBatch<Item>(
  most: { count: number; bytes: number },
  bytesOf: (item: Item) => number,
  work: (items: readonly Item[]) => Promise<void>,
): Batch<Item> {
  let items: Item[] = [];
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

/** Opens the log that replayed records are written to. */
export function openLog(kafka: Kafka): Promise<KafkaRecordLog> {
  return createKafkaRecordLog({
    kafka,
    instanceId: randomUUID(),
    logger: silent(),
    metrics: createKafkaMetrics(new Registry(), systemClockMs),
    nowMs: systemClockMs,
    onFatal: () => undefined,
  });
}
