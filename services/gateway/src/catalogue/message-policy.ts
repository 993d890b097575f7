import type { EventTypePolicy } from '@posthorn/domain/message.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { EventTypeDocument } from '@posthorn/platform/mongo/documents.ts';
import type { mongo } from 'mongoose';
import { hash } from 'node:crypto';
import { ApiError, type Problem } from '../api-error.ts';
import type { CheckOutcome, CheckedSchema, PayloadChecks } from './payload-checks.ts';

/** What acceptance knows of an event type. */
export interface KnownEventType {
  isArchived: boolean;
  /** Null for one that takes every payload. */
  schema: CheckedSchema | null;
}

/** What the catalogue of a project refuses (docs/contract.md C28.6). A project whose policy is `open` has none. */
export interface MessagePolicy {
  level: 'known' | 'validated';
  /** Null for an event type that the catalogue does not have. */
  typeOf: (name: string) => Promise<KnownEventType | null>;
}

/** A message, and the policy of the project that it goes to. */
export interface PolicedMessage {
  policy: MessagePolicy;
  eventType: string | null;
  payload: string;
}

/**
 * Returns what refuses each of the messages of a company, in their order; null for one that may be accepted. Rejects when
 * the catalogue cannot be read, and when payloads cannot be checked.
 */
export async function refusalsOf(
  checks: Pick<PayloadChecks, 'check'>,
  companyId: string,
  messages: readonly PolicedMessage[],
): Promise<(ApiError | null)[]> {
  const types = await Promise.all(messages.map(typeOfMessage));
  const toCheck = messages.flatMap(({ policy: { level }, payload }, index) => {
    const schema = level === 'validated' ? (types[index]?.schema ?? null) : null;
    return schema === null || types[index]?.isArchived ? [] : [{ index, schema, payload }];
  });
  const outcomes = toCheck.length === 0 ? [] : await checks.check(companyId, toCheck);
  const refusals = types.map((type, index) =>
    type && !type.isArchived ? null : unknownType(messages[index]?.eventType ?? null),
  );
  toCheck.forEach(({ index }, n) => {
    const outcome = outcomes[n];
    if (outcome) refusals[index] = refusalBy(problemsOf(outcome));
  });
  return refusals;
}

async function typeOfMessage({
  policy,
  eventType,
}: PolicedMessage): Promise<KnownEventType | null> {
  return eventType === null ? null : policy.typeOf(eventType);
}

function unknownType(eventType: string | null): ApiError {
  const message =
    eventType === null
      ? 'is required: the project takes event types of its catalogue only'
      : 'is no event type in the catalogue of the project, or is archived';
  const problems = [{ path: 'eventType', message }];
  return new ApiError('event_type_unknown', `eventType: ${message}`, { problems });
}

/** The problems of a payload; none when it may be accepted. */
export function problemsOf(outcome: CheckOutcome): Problem[] {
  if ('problems' in outcome) return outcome.problems;
  const message =
    'fault' in outcome ? 'cannot be checked by the schema' : 'takes too long to check';
  return [{ path: 'payload', message }];
}

/** The results of a batch have no list of problems. */
const PROBLEMS_IN_MESSAGE = 3;

function refusalBy(problems: Problem[]): ApiError | null {
  if (problems.length === 0) return null;
  const first = problems.slice(0, PROBLEMS_IN_MESSAGE);
  const others = problems.length - first.length;
  const text = first.map(({ path, message }) => `${path}: ${message}`).join('; ');
  const more = others > 0 ? ` (and ${others} more)` : '';
  return new ApiError('payload_invalid', text + more, { problems });
}

/** Returns what acceptance reads of a catalogue: the policy of a project, and one event type. */
export function createCatalogueReads(db: mongo.Db) {
  return {
    async policyOf(companyId: string, _id: string): Promise<EventTypePolicy | null> {
      const project = await documentsOf(db, 'projects', companyId).findOne({ _id });
      return project === null ? null : (project.eventTypePolicy ?? 'open');
    },
    async eventTypeOf(companyId: string, _id: string): Promise<KnownEventType | null> {
      const [found] = await documentsOf(db, 'eventTypes', companyId)
        .find({ _id })
        .project<Pick<EventTypeDocument, 'archived' | 'schema'>>({ archived: 1, schema: 1 })
        .toArray();
      if (!found) return null;
      const { archived: isArchived, schema } = found;
      return { isArchived, schema: schema === null ? null : schemaOf(companyId, _id, schema) };
    },
  };
}

/** Equal schemas of a company are one for the worker. */
export function schemaOf(companyId: string, eventTypeId: string, text: string): CheckedSchema {
  return { id: `${companyId}/${hash('sha256', text, 'base64url')}`, text, eventTypeId };
}
