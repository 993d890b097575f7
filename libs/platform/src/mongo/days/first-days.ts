import { DAY_MS, dayNumberOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import { createDayCollections } from './day-collections.ts';
import { daysToHave } from './days-to-have.ts';
import { DAY_KINDS } from './days.ts';
import { writeLayout, type WrittenLayout } from './stored-layout.ts';

/**
 * Stores the layout. A fresh installation gets its first days before that: no process uses messages before it knows the
 * layout, so none can be anywhere else. What is killed in between is fresh when it is repeated.
 */
export async function storeLayout(db: mongo.Db, layout: WrittenLayout): Promise<void> {
  if (!(await isFresh(db))) return writeLayout(db, layout);
  const days = createDayCollections(db);
  const nowMs = await days.nowMs();
  const beginMs = firstBeginMs(nowMs);
  for (const day of daysToHave({ beginMs }, nowMs)) {
    for (const kind of DAY_KINDS) await days.create(kind, day, layout);
  }
  return writeLayout(db, layout, new Date(beginMs));
}

/**
 * The day before: for gateways whose clock is behind. With an earlier begin, a list that does not fill its page would read
 * thirty days that cannot have anything.
 */
export function firstBeginMs(nowMs: number): number {
  return (dayNumberOf(nowMs) - 1) * DAY_MS;
}

/** An installation of an earlier version has no layout, but a company, and its messages are in the old collections. */
async function isFresh(db: mongo.Db): Promise<boolean> {
  for (const name of ['layout', 'companies', 'messages'] as const) {
    const found = await collection(db, name).findOne({}, { projection: { _id: 1 } });
    if (found) return false;
  }
  return true;
}
