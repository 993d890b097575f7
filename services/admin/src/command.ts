import {
  type AuditAction,
  type AuditedFields,
  type AuditTarget,
  changesBetween,
} from '@posthorn/domain/audit.ts';
import { createAuditLog, createAuditStore } from '@posthorn/platform/mongo/companies/audit-log.ts';
import { connectMongo, mongoTlsOf } from '@posthorn/platform/mongo/connect.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { type OutputOptions, printResult } from './output.ts';

/** A time as text, in milliseconds since 1970. */
export const timeOption = z.iso
  .datetime({
    offset: true,
    error: 'must be an ISO time with a zone, such as 2026-08-01T09:30:00Z',
  })
  .transform((text) => Date.parse(text));

/** Throws an error that names every invalid option. */
export function parseOptions<Schema extends z.ZodType>(
  schema: Schema,
  input: object,
): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => {
    return `${optionOf(path.join('.'))} ${message}.`;
  });
  throw new Error(problems.join('\n'));
}

function optionOf(name: string): string {
  return name === 'id'
    ? 'id'
    : `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export const databaseConfig = z.object(settings.mongodb);

/** Connects to MongoDB, runs `work` and prints what it returns. `schema` has the settings that it needs. */
export async function runOnDatabase<Schema extends typeof databaseConfig>(
  output: OutputOptions,
  schema: Schema,
  work: (db: Database, config: z.infer<Schema>, time: DatabaseTime) => Promise<object>,
): Promise<void> {
  printResult(output, await withDatabase(schema, work));
}

/** Connects to MongoDB and runs `work`, with the time of the database. `schema` has the settings that it needs. */
export async function withDatabase<Schema extends typeof databaseConfig, Result>(
  schema: Schema,
  work: (db: Database, config: z.infer<Schema>, time: DatabaseTime) => Promise<Result>,
): Promise<Result> {
  const config = parseConfig<Schema>('admin', schema, process.env);
  const mongo = await connectMongo(config.MONGODB_URL, 'posthorn-admin', mongoTlsOf(config));
  try {
    return await work(mongo.db, config, mongo.time);
  } finally {
    await mongo.close();
  }
}

export interface AdminAction {
  /** NO_COMPANY for what concerns the installation. */
  companyId: string;
  action: AuditAction;
  target: AuditTarget;
  /** The part that is asked for. */
  fields: AuditedFields;
}

/**
 * Makes a change, and records it in the audit log. `fieldsOf` returns what was changed, when it is not what was
 * asked for. Throws before anything is changed when the event cannot be stored.
 */
export type RecordAdmin = <Result>(
  action: AdminAction,
  make: () => Promise<Result>,
  fieldsOf?: (result: Result) => AuditedFields,
) => Promise<Result>;

export function createRecordAdmin(db: mongo.Db): RecordAdmin {
  const log = createAuditLog({
    store: createAuditStore(db),
    // A refusal of the command comes before any change; after another failure a part may have been changed.
    refusalOf: () => null,
    observer: {
      stored: () => undefined,
      notCompleted: ({ id }) => {
        process.stderr.write(`The audit event ${id} stays started: it could not be completed.\n`);
      },
    },
    newId: systemIds,
    nowMs: systemClockMs,
  });
  return ({ fields, ...action }, make, fieldsOf) =>
    log.recordChange(
      {
        ...action,
        actor: { kind: 'admin' },
        clientAddress: null,
        requestId: null,
        changes: changesBetween({}, fields),
      },
      make,
      (result) => (fieldsOf ? { changes: changesBetween({}, fieldsOf(result)) } : {}),
    );
}
