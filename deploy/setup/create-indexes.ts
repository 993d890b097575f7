import { connectMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import { createIndexes } from '@posthorn/platform/mongo/create-indexes.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import { runSetup } from './run-setup.ts';

const config = z.object({ ...settings.mongodb, ...settings.retention });

await runSetup('create-indexes', config, async (values) => {
  const mongo = await connectMongo(values.MONGODB_URL, 'posthorn-setup');
  try {
    await createIndexes(mongo.db, values.RETENTION_DAYS);
  } finally {
    await mongo.close();
  }
  return 'collections and indexes exist';
});
