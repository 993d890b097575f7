import { dayName, dayNumberOf } from '@posthorn/domain/ids/days.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { connectMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import { createDayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import type { mongo } from 'mongoose';
import { rounded } from '../../figures/percentiles.ts';
import type { Table } from '../../report/report.ts';
import { type Bench, defineScenario } from '../../scenario.ts';
import { createProbe, type Probe, type ProbeResult } from '../greedy/probe.ts';
import { warmUp } from '../warm-up.ts';
import { compareSizes, SAMPLE_MESSAGES, SAMPLES } from './compare-sizes.ts';

/** Not yesterday: what the run itself accepts may be of yesterday when it begins at midnight. */
const DAYS_AGO = 3;

export const expiry = defineScenario({
  summary: 'requests while a day of messages is dropped, and while as many are deleted one by one',
  options: {
    warmup: { default: 20, meaning: 'seconds of closed loop before the measurements' },
    seconds: { default: 20, meaning: 'seconds of each phase' },
    documents: { default: 2_000_000, meaning: 'messages of the day' },
  },
  async run(bench, { warmup, seconds, documents }) {
    const load = await bench.openEndpoints({ count: 1 });
    const mongo = await connectMongo(bench.stack.addresses.mongodbUrl, 'posthorn-bench', null, {
      isForLongCommands: true,
    });
    const probe = createProbe(
      bench.stack.credentials,
      requiredAt(load.webhookIds, 0, 'webhook'),
      bench.signal,
    );
    try {
      const sizes = await compareSizes(mongo.db);
      const day = await fillDay(bench, mongo.db, documents);
      await warmUp(bench, load, { warmup });
      const phases = await measure({ bench, probe, db: mongo.db, day, seconds });
      return { phases: [], goals: [], tables: [sizes, tableOf(phases)], extra: { documents } };
    } finally {
      await Promise.all([probe.close(), mongo.close()]);
    }
  },
});

interface Wanted {
  bench: Bench;
  probe: Probe;
  db: mongo.Db;
  day: number;
  seconds: number;
}

interface Expired {
  responses: ProbeResult;
  /** How many documents were removed, and the time that it took. */
  removed: number;
  removedMs: number;
}

async function measure(wanted: Wanted): Promise<Record<string, Expired>> {
  const { bench, db, day, seconds } = wanted;
  const full = db.client.db(`${db.databaseName}_messages`).collection(dayName(day));
  const days = createDayCollections(db);
  const dropAll = async (): Promise<number> => {
    const count = await full.estimatedDocumentCount();
    await days.drop('messages', day);
    return count;
  };
  return {
    'as usual': await during(wanted, () => Promise.resolve(0)),
    'deleted one by one': await during(wanted, () => deleteLikeTtl(full, seconds, bench.signal)),
    dropped: await during(wanted, dropAll),
  };
}

async function during(
  { bench, probe, seconds }: Wanted,
  remove: () => Promise<number>,
): Promise<Expired> {
  const probing = probe.run(seconds);
  const startedMs = performance.now();
  const removed = await remove();
  const removedMs = rounded(performance.now() - startedMs, 1);
  bench.log(`Removed ${removed} documents in ${removedMs} ms`);
  return { responses: await probing, removed, removedMs };
}

/** Copies the samples within the server until there are enough. Returns the number of the day. */
async function fillDay({ log, signal }: Bench, db: mongo.Db, documents: number): Promise<number> {
  const day = dayNumberOf(Date.now()) - DAYS_AGO;
  await createDayCollections(db).create('messages', day, { isSharded: false });
  log(`Filling a day with ${documents} messages`);
  const into = { db: `${db.databaseName}_messages`, coll: dayName(day) };
  const copies = Math.ceil(documents / SAMPLES);
  let next = 0;
  const copyInTurn = async (): Promise<void> => {
    while (next < copies && !signal.aborted) {
      const copy = next;
      next += 1;
      const pipeline = [{ $set: { _id: idOfCopy(copy) } }, { $merge: { into, ...ONLY_INSERT } }];
      await db.collection(SAMPLE_MESSAGES).aggregate(pipeline).toArray();
      if (copy % COPIES_PER_LINE === 0) log(`${copy * SAMPLES} messages`);
    }
  };
  await Promise.all(Array.from({ length: COPIES_AT_ONCE }, copyInTurn));
  return day;
}

/** `$merge` uses one core. */
const COPIES_AT_ONCE = 2;

/** Without it `$merge` looks up each document before it stores it. */
const ONLY_INSERT = { whenMatched: 'fail', whenNotMatched: 'insert' };
const COPIES_PER_LINE = 100;

/** A later copy has greater ids, as later messages have, so that it is stored at the end of each index. */
function idOfCopy(copy: number): object {
  const prefix = `msg_${String(copy).padStart(5, '0')}`;
  return { $concat: [prefix, { $substrCP: ['$_id', 'msg_'.length, 30] }] };
}

/** A TTL index deletes what has expired document by document, on one thread. */
async function deleteLikeTtl(
  full: mongo.Collection,
  seconds: number,
  signal: AbortSignal,
): Promise<number> {
  const untilMs = performance.now() + seconds * 1_000;
  let removed = 0;
  while (performance.now() < untilMs && !signal.aborted) {
    const page = await full.find({}).project({ _id: 1 }).limit(1_000).toArray();
    if (page.length === 0) break;
    const ids = page.map(({ _id }) => _id as never);
    removed += (await full.deleteMany({ _id: { $in: ids } })).deletedCount;
  }
  return removed;
}

function tableOf(phases: Record<string, Expired>): Table {
  const rows = Object.entries(phases).flatMap(([phase, { responses, removed, removedMs }]) =>
    Object.entries(responses).map(([name, { count, p50, p99, max }]) => {
      return [`${phase}: ${name}`, { count, p50, p99, max, removed, removedMs }] as const;
    }),
  );
  return { title: 'Responses, ms', rows: Object.fromEntries(rows), notes: [] };
}
