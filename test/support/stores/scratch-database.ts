import { DAY_MS, dayNumberOf } from '@posthorn/domain/ids.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { createIndexes, type CreateOptions } from '@posthorn/platform/mongo/create-indexes.ts';
import { createDayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import {
  DAY_KINDS,
  dayDatabaseName,
  withDays,
  type Database,
  type DayKind,
} from '@posthorn/platform/mongo/days/days.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createNamespace } from '../process/namespace.ts';

export interface ScratchDatabase {
  db: Database;
  drop: () => Promise<void>;
}

const RETENTION = { days: 30, auditDays: 400 };

/** Creates a database with every collection and index, as before days began if not told otherwise; `drop` removes it. */
export async function openScratchDatabase(
  options: CreateOptions = { days: 'later' },
): Promise<ScratchDatabase> {
  const mongo = await connectMongo(createNamespace().MONGODB_URL, 'posthorn-test');
  await createIndexes(mongo.db, RETENTION, options);
  await mongo.readLayout();
  const { client, databaseName } = mongo.db;
  const daysOf = (name: DayKind): string => dayDatabaseName(databaseName, name);
  return {
    db: mongo.db,
    drop: async () => {
      for (const name of [databaseName, daysOf('messages'), daysOf('deliveries')]) {
        await client.db(name).dropDatabase();
      }
      await mongo.close();
    },
  };
}

/** The same, with a collection for each day since `beginMs` (milliseconds since 1970). */
export async function openScratchDays(beginMs = 0): Promise<ScratchDatabase> {
  const { db, drop } = await openScratchDatabase();
  const { create } = createDayCollections(db);
  const today = dayNumberOf(Date.now());
  for (const kind of DAY_KINDS)
    for (const day of [today - 1, today]) await create(kind, day, { isSharded: false });
  const layout = { beginMs, retentionMs: RETENTION.days * DAY_MS };
  return { db: withDays(db, { layout: () => layout, nowMs: systemClockMs }), drop };
}
