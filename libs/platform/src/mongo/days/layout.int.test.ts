import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createIndexes } from '../create-indexes.ts';
import { toDocument } from '../messages/messages.ts';
import { createDayCollections, daysToHave, firstBeginMs } from './day-collections.ts';
import { DAY_KINDS } from './days.ts';
import { readLayout } from './layout.ts';

async function storeMessageOf(ms: number, { db }: ScratchDatabase): Promise<void> {
  const id = `${firstIdAt('msg', ms)}${'0'.repeat(16)}`;
  await collection(db, 'messages').insertOne(toDocument(sampleMessage(id)));
}

describe('create-indexes', () => {
  let fresh: ScratchDatabase;
  let begunMs: number;

  beforeAll(async () => {
    begunMs = firstBeginMs(Date.now());
    fresh = await openScratchDatabase({});
  });

  afterAll(() => fresh.drop());

  const create = () => createIndexes(fresh.db, { days: 30, auditDays: 400 });
  const forget = () => collection(fresh.db, 'layout').deleteMany({});
  const beginMs = async () => (await readLayout(fresh.db))?.beginMs;

  it('begins a fresh installation with days, of which it has today and the next three', async () => {
    expect(await beginMs()).toBe(begunMs);
    const days = createDayCollections(fresh.db);
    const nowMs = await days.nowMs();
    for (const kind of DAY_KINDS) {
      expect(await days.list(kind)).toEqual(daysToHave({ beginMs: begunMs }, nowMs));
      const today = fresh.db.days[kind].of(firstIdAt('msg', nowMs));
      expect(today.dbName).toBe(`${fresh.db.databaseName}_${kind}`);
      expect(await today.indexes()).toHaveLength(kind === 'messages' ? 5 : 4);
    }
  });

  it('changes nothing when it is repeated', async () => {
    await storeMessageOf(Date.now(), fresh);
    await create();
    expect(await beginMs()).toBe(begunMs);
    await collection(fresh.db, 'messages').deleteMany({});
  });

  it('does the same when it was killed before the layout was stored', async () => {
    const days = createDayCollections(fresh.db);
    const [today = 0] = await days.list('deliveries');
    await days.drop('deliveries', today);
    await forget();
    await create();
    expect(await beginMs()).toBe(begunMs);
    expect(await days.list('deliveries')).toContain(today);
  });

  it('leaves everything where it is when the earlier layout is stored', async () => {
    await collection(fresh.db, 'layout').updateOne({}, { $unset: { beginAt: '' } });
    await create();
    expect(await beginMs()).toBe(Infinity);
  });

  it.each(['companies', 'messages'] as const)(
    'begins an installation of an earlier version without days: it has %s',
    async (name) => {
      await forget();
      const documents = collection(fresh.db, name);
      await documents.insertOne({ _id: 'of_before', createdAt: new Date() } as never);
      await create();
      expect(await beginMs()).toBe(Infinity);
      await documents.deleteMany({});
    },
  );
});
