import { z } from 'zod';

const VERSION = 1;

/** A DeliveryRef, as every record about a delivery carries it. */
export const DELIVERY_REF = {
  version: z.literal(VERSION),
  messageId: z.string().startsWith('msg_').max(64),
  webhookId: z.string().startsWith('wh_').max(64),
  companyId: z.string().startsWith('comp_').max(64),
  appId: z.string().startsWith('app_').max(64).nullable(),
  createdAtMs: z.number().int(),
  erasesPayload: z.literal(true).exactOptional(),
  omitsResponses: z.literal(true).exactOptional(),
  expiresAtMs: z.number().int().exactOptional(),
  removeAtMs: z.number().int().exactOptional(),
  // 256 characters have at most 512 UTF-16 units.
  orderingKey: z.string().max(512).exactOptional(),
  position: z.number().int().exactOptional(),
};

/** The record cannot be read; it goes to the dead letters. */
export class UnreadableRecordError extends Error {
  override readonly name = 'UnreadableRecordError';
}

/** Returns the fields as one line of JSON, with the version of the format. */
export function encodeFields(fields: object): string {
  return JSON.stringify({ version: VERSION, ...fields });
}

/** Throws UnreadableRecordError. */
export function decodeFields<Schema extends z.ZodType>(
  schema: Schema,
  text: string,
): z.output<Schema> {
  const fields = parseJson(text);
  const result = schema.safeParse(fields);
  if (result.success) return result.data;
  const { data } = versioned.safeParse(fields);
  if (data && data.version !== VERSION) {
    throw new UnreadableRecordError(
      `a version ${data.version} record, and this process reads version ${VERSION}: replay it when all processes are upgraded`,
    );
  }
  const where = result.error.issues.map((issue) => issue.path.join('.') || 'record');
  throw new UnreadableRecordError(`not a version ${VERSION} record: ${where.join(', ')}`);
}

const versioned = z.object({ version: z.number() });

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableRecordError('not JSON');
  }
}

/** Decodes a record from Kafka, and returns an error as a value: a handler that throws would block its partition. */
export function readRecord<T>(decodeValue: () => T): T | UnreadableRecordError {
  try {
    return decodeValue();
  } catch (error) {
    return error instanceof UnreadableRecordError
      ? error
      : new UnreadableRecordError(String(error));
  }
}
