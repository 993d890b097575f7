import { connectMongo, mongoTlsOf } from '@posthorn/platform/mongo/connection/connect.ts';
import { parseConfig } from '@posthorn/platform/service/settings/config.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { z } from 'zod';
import { printResult, type OutputOptions } from './output.ts';

export const databaseConfig = z.object(settings.mongodb);

/** Connects to MongoDB, runs `work` and prints what it returns. `schema` has the settings that it needs. */
export async function runOnDatabase<Schema extends typeof databaseConfig>(
  output: OutputOptions,
  schema: Schema,
  work: (db: Database, config: z.infer<Schema>) => Promise<object>,
): Promise<void> {
  printResult(output, await withDatabase(schema, work));
}

/** Connects to MongoDB and runs `work`. `schema` has the settings that it needs. */
export async function withDatabase<Schema extends typeof databaseConfig, Result>(
  schema: Schema,
  work: (db: Database, config: z.infer<Schema>) => Promise<Result>,
): Promise<Result> {
  const config = parseConfig<Schema>('admin', schema, process.env);
  const mongo = await connectMongo(config.MONGODB_URL, 'posthorn-admin', mongoTlsOf(config));
  try {
    return await work(mongo.db, config);
  } finally {
    await mongo.close();
  }
}
