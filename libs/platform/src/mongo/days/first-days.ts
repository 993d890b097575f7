import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import { createDayCollections } from './day-collections.ts';
import { daysToHave } from './days-to-have.ts';
import { DAY_KINDS } from './days.ts';
import { writeLayout, type WrittenLayout } from './stored-layout.ts';

/** Every document is in the collection of its day. */
const SINCE_EVER = { beginMs: 0 };

/**
 * Stores the layout. A fresh installation gets its first days before that and has days since ever: no process uses
 * messages before it knows the layout, so none can be anywhere else. What is killed in between is fresh when it is
 * repeated.
 */
export async function storeLayout(db: mongo.Db, layout: WrittenLayout): Promise<void> {
  if (!(await isFresh(db))) return writeLayout(db, layout);
  const days = createDayCollections(db);
  for (const day of daysToHave(SINCE_EVER, await days.nowMs())) {
    for (const kind of DAY_KINDS) await days.create(kind, day, layout);
  }
  return writeLayout(db, layout, new Date(SINCE_EVER.beginMs));
}

/** An installation of an earlier version has no layout, but a company, and its messages are in the collections of before. */
async function isFresh(db: mongo.Db): Promise<boolean> {
  for (const name of ['layout', 'companies', 'messages'] as const) {
    const found = await collection(db, name).findOne({}, { projection: { _id: 1 } });
    if (found) return false;
  }
  return true;
}
