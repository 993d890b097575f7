import { DAY_INDEXES } from '@posthorn/platform/mongo/days/day-indexes.ts';
import type { mongo } from 'mongoose';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Table } from '../../report/report.ts';
import { sampleDocuments, sampleOwner } from '../sample-documents.ts';

export const SAMPLES = 20_000;
const BATCH = 1_000;
const KINDS = ['messages', 'deliveries'] as const;
const COMPRESSORS = ['snappy', 'zstd'] as const;

interface Stats {
  avgObjSize: number;
  storageSize: number;
  totalIndexSize: number;
}

/** The collection that `compareSizes` leaves behind, full of messages. */
export const SAMPLE_MESSAGES = 'messages-zstd';

/** Stores the same number of documents with each compression. Returns the bytes of one of each kind. */
export async function compareSizes(db: mongo.Db): Promise<Table> {
  const rows: Record<string, Record<string, number>> = {};
  for (const compressor of COMPRESSORS) {
    for (const kind of KINDS) {
      const name = `${kind}-${compressor}`;
      await insertSamples(await createWith(db, name, kind, compressor), kind);
      await db.client.db('admin').command({ fsync: 1 });
      const stats = (await db.command({ collStats: name })) as Stats;
      rows[`${kind}, ${compressor}`] = {
        document: Math.round(stats.avgObjSize),
        'on disk': Math.round(stats.storageSize / SAMPLES),
        indexes: Math.round(stats.totalIndexSize / SAMPLES),
      };
    }
  }
  return { title: 'Bytes of one document', rows, notes: [] };
}

async function createWith(
  db: mongo.Db,
  name: string,
  kind: (typeof KINDS)[number],
  compressor: string,
): Promise<mongo.Collection> {
  const storageEngine = { wiredTiger: { configString: `block_compressor=${compressor}` } };
  const collection = await db.createCollection(name, { storageEngine });
  await collection.createIndexes(
    DAY_INDEXES[kind].map(({ key, options }) => ({ ...options, key })),
  );
  return collection;
}

async function insertSamples(
  collection: mongo.Collection,
  kind: (typeof KINDS)[number],
): Promise<void> {
  for (let n = 0; n < SAMPLES; n += BATCH) {
    const batch = Array.from({ length: BATCH }, () =>
      sampleDocuments(sampleOwner(), { messageId: systemIds('msg'), createdAt: new Date() }),
    );
    const documents = batch.map(({ message, delivery }) =>
      kind === 'messages' ? message : delivery,
    );
    await collection.insertMany(documents as never, { ordered: false });
  }
}
