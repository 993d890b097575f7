import { EVENT_TYPE_FIELDS, eventTypeIdOf } from '@posthorn/domain/event-type-fields.ts';
import {
  changedFields,
  type FieldChanges,
  newFields,
  type NewFields,
  type StoredFields,
} from '@posthorn/domain/object-fields.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type {
  EventTypePage,
  EventTypeStore,
  ListedEventType,
  WholeCatalogue,
} from '@posthorn/platform/mongo/companies/event-types.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { EventTypeDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { ApiError, foundOr404, invalidRequest, notFound, unavailable } from '../api-error.ts';
import type { Apps } from '../projects/apps.ts';
import { isEmptyUpdate, type Projects } from '../projects/projects.ts';
import type { Quotas } from '../projects/quotas.ts';

import { schemaOf } from './message-policy.ts';
import type { PayloadChecks } from './payload-checks.ts';

interface EventTypesDeps {
  store: EventTypeStore;
  checks: Pick<PayloadChecks, 'check'>;
  projects: Pick<Projects, 'get' | 'exists'>;
  apps: Pick<Apps, 'get'>;
  quotas: Quotas;
  invalidate: Invalidate;
  nowMs: () => number;
}

/** The project and the name of an event type. */
export interface EventTypeKey {
  projectId: string;
  name: string;
}

type NewEventType = NewFields<typeof EVENT_TYPE_FIELDS> & { projectId: string; creationId: string };
export type EventTypeChanges = FieldChanges<typeof EVENT_TYPE_FIELDS>;

interface NewEventTypes {
  projectId: string;
  creationId: string;
  /** As the store has them. */
  eventTypes: readonly StoredFields<typeof EVENT_TYPE_FIELDS>[];
}

/**
 * The catalogues of a company's projects (docs/contract.md C28). Functions throw ApiError 404 for an unknown project, app or
 * event type.
 */
export interface EventTypes {
  /**
   * Creates the event type, or returns the one that a request with the same `creationId` made. Throws ApiError 409 when the
   * project has another one of this name, or as many as it may, and 400 when its example does not meet its schema.
   */
  create: (companyId: string, eventType: NewEventType) => Promise<EventTypeDocument>;
  /** In parts, by name. */
  list: (companyId: string, page: EventTypePage) => Promise<AsyncIterable<ListedEventType[]>>;
  /** Returns null where the project has no such event type. */
  find: (companyId: string, key: EventTypeKey) => Promise<EventTypeDocument | null>;
  /** With the schema of an earlier version, when one is named. */
  get: (companyId: string, key: EventTypeKey, version?: number) => Promise<EventTypeDocument>;
  /** Another `schema` is another version. Throws ApiError 400 as `create`, and 503 when others keep changing it. */
  update: (
    companyId: string,
    key: EventTypeKey,
    changes: EventTypeChanges,
  ) => Promise<Changed<EventTypeDocument>>;
  /**
   * Creates event types of a project together, as many as one write takes. Their examples have been checked. Returns the names
   * that the project has already. Throws ApiError 404 and 409 as `create`.
   */
  createEach: (companyId: string, created: NewEventTypes) => Promise<ReadonlySet<string>>;
  /**
   * Changes event types of a project together, as many as one read and one write take. Their examples have been checked.
   * Throws ApiError 404 and 503 as `update`.
   */
  updateEach: (
    companyId: string,
    projectId: string,
    changes: ReadonlyMap<string, EventTypeChanges>,
  ) => Promise<void>;
  /** Removes its earlier schemas too. Returns the event type. */
  remove: (companyId: string, key: EventTypeKey) => Promise<EventTypeDocument>;
  /** Those of the app's project that are not archived. */
  listOfApp: (
    companyId: string,
    appId: string,
    page: Omit<EventTypePage, 'projectId' | 'archived'>,
  ) => Promise<AsyncIterable<ListedEventType[]>>;
  getOfApp: (companyId: string, appId: string, name: string) => Promise<EventTypeDocument>;
  /** Whole, in parts, by name. */
  readAll: (companyId: string, which: WholeCatalogue) => AsyncIterable<EventTypeDocument[]>;
  /** Throws ApiError 400, as a creation, when the example does not meet the schema, or that cannot be used. */
  assertExample: (companyId: string, projectId: string, eventType: Exampled) => Promise<void>;
  /**
   * Throws ApiError 400 for an entry of a webhook's `eventTypes` that selects no event type of its project now, unless it was
   * there `before`, or the policy of the project is `open`.
   */
  assertSelectable: (
    of: { companyId: string; projectId: string },
    given: readonly string[],
    before?: readonly string[],
  ) => Promise<void>;
}

type Exampled = Pick<EventTypeDocument, 'name' | 'schema' | 'example'>;

export function createEventTypes(deps: EventTypesDeps): EventTypes {
  const { store, projects, apps } = deps;
  const find: EventTypes['find'] = (companyId, { projectId, name }) =>
    store.find(companyId, eventTypeIdOf(projectId, name));
  const findOr404 = async (companyId: string, key: EventTypeKey): Promise<EventTypeDocument> =>
    foundOr404(await find(companyId, key), 'event type');
  return {
    create: (companyId, eventType) => create(deps, companyId, eventType),
    async list(companyId, page) {
      await projects.get(companyId, page.projectId);
      return store.list(companyId, page);
    },
    find,
    async get(companyId, key, version) {
      const found = await findOr404(companyId, key);
      if (version === undefined) return found;
      const schema = await store.findSchema(found, version);
      if (schema === undefined) throw notFound('version of the event type');
      return { ...found, schema, schemaVersion: version };
    },
    update: (companyId, key, changes) => update(deps, () => findOr404(companyId, key), changes),
    createEach: (companyId, created) => createEach(deps, companyId, created),
    updateEach: (companyId, projectId, changes) =>
      updateEach(deps, { companyId, projectId }, changes),
    async remove(companyId, key) {
      const found = await findOr404(companyId, key);
      if (!(await store.remove(found))) throw notFound('event type');
      await deps.invalidate({ companyId, id: found._id });
      return found;
    },
    async listOfApp(companyId, appId, page) {
      const { projectId } = await apps.get(companyId, appId);
      return store.list(companyId, { ...page, projectId, archived: false });
    },
    readAll: store.readAll,
    assertExample: (companyId, projectId, { name, ...eventType }) =>
      assertExample(deps, { ...eventType, companyId, _id: eventTypeIdOf(projectId, name) }),
    async getOfApp(companyId, appId, name) {
      const { projectId } = await apps.get(companyId, appId);
      const found = await findOr404(companyId, { projectId, name });
      if (found.archived) throw notFound('event type');
      return found;
    },
    assertSelectable: (of, given, before = []) => assertSelectable(deps, of, { given, before }),
  };
}

/** Queries of the beginnings of one webhook; the pool has 20 connections. */
const QUERIES_AT_ONCE = 8;

async function assertSelectable(
  { store, projects }: EventTypesDeps,
  { companyId, projectId }: { companyId: string; projectId: string },
  { given, before }: { given: readonly string[]; before: readonly string[] },
): Promise<void> {
  const added = new Set(given.filter((each) => !before.includes(each)));
  if (added.size === 0) return;
  const { eventTypePolicy = 'open' } = await projects.get(companyId, projectId);
  if (eventTypePolicy === 'open') return;
  const [beginnings, names] = partition([...added], (each) => each.endsWith('*'));
  const known = new Set(await store.knownAmong(companyId, projectId, names));
  for (const some of slicesOf(beginnings, QUERIES_AT_ONCE)) {
    await Promise.all(
      some.map(async (each) => {
        const beginning = each.slice(0, -1);
        if (await store.hasBeginning(companyId, projectId, beginning)) known.add(each);
      }),
    );
  }
  const message = 'selects no event type in the catalogue of the project';
  const problems = given.flatMap((each, index) =>
    added.has(each) && !known.has(each) ? [{ path: `eventTypes.${index}`, message }] : [],
  );
  if (problems.length > 0) throw invalidRequest(problems);
}

function partition(texts: readonly string[], isFirst: (text: string) => boolean) {
  return [texts.filter(isFirst), texts.filter((each) => !isFirst(each))] as const;
}

async function create(
  deps: EventTypesDeps,
  companyId: string,
  { projectId, creationId, ...given }: NewEventType,
): Promise<EventTypeDocument> {
  const { store, projects, quotas, invalidate, nowMs } = deps;
  await projects.get(companyId, projectId);
  const now = new Date(nowMs());
  const eventType: EventTypeDocument = {
    _id: eventTypeIdOf(projectId, given.name),
    companyId,
    projectId,
    ...newFields(EVENT_TYPE_FIELDS, given),
    schemaVersion: 1,
    creationId,
    createdAt: now,
    updatedAt: now,
  };
  await assertExample(deps, eventType);
  const created = await quotas.createWithin({
    setting: 'QUOTA_EVENT_TYPES_PER_PROJECT',
    companyId,
    ownerId: projectId,
    count: (upTo) => store.count(companyId, projectId, upTo),
    create: () => insert(deps, eventType),
  });
  await invalidate({ companyId, id: created._id });
  return created;
}

async function insert(
  { store, projects }: EventTypesDeps,
  eventType: EventTypeDocument,
): Promise<EventTypeDocument> {
  const { _id, companyId, projectId, name, creationId } = eventType;
  if (!(await store.insert(eventType))) {
    const found = await store.find(companyId, _id);
    if (found?.creationId === creationId) return found;
    throw new ApiError('event_type_exists', `The project has the event type ${name} already.`);
  }
  if (await projects.exists(companyId, projectId)) return eventType;
  // The project was deleted in the meantime. No event type may outlive its project.
  await store.remove(eventType);
  throw notFound('project');
}

async function createEach(
  { store, projects, quotas, invalidate, nowMs }: EventTypesDeps,
  companyId: string,
  { projectId, creationId, eventTypes }: NewEventTypes,
): Promise<ReadonlySet<string>> {
  const now = new Date(nowMs());
  const documents = eventTypes.map((fields) => ({
    _id: eventTypeIdOf(projectId, fields.name),
    companyId,
    projectId,
    ...fields,
    schemaVersion: 1,
    creationId,
    createdAt: now,
    updatedAt: now,
  }));
  const known = await quotas.createWithin({
    setting: 'QUOTA_EVENT_TYPES_PER_PROJECT',
    companyId,
    ownerId: projectId,
    count: (upTo) => store.count(companyId, projectId, upTo),
    amount: documents.length,
    create: () => store.insertEach(companyId, documents),
  });
  const created = documents.filter((each) => !known.includes(each));
  if (!(await projects.exists(companyId, projectId))) {
    // As in `insert`.
    await Promise.all(created.map((each) => store.remove(each)));
    throw notFound('project');
  }
  await invalidate(...created.map(({ _id }) => ({ companyId, id: _id })));
  return new Set(known.map(({ name }) => name));
}

async function updateEach(
  deps: EventTypesDeps,
  { companyId, projectId }: { companyId: string; projectId: string },
  changes: ReadonlyMap<string, EventTypeChanges>,
): Promise<void> {
  const { store, invalidate, nowMs } = deps;
  const idOf = (name: string): string => eventTypeIdOf(projectId, name);
  const found = await store.findEach(companyId, [...changes.keys()].map(idOf));
  const updates = found.map((seen) => {
    const fields = changedFields(EVENT_TYPE_FIELDS, changes.get(seen.name) ?? {});
    return { seen, changes: storedChanges(seen, fields, nowMs()) };
  });
  const missed = await store.updateEach(companyId, updates);
  const updated = new Set(found.map(({ _id }) => _id).filter((id) => !missed.has(id)));
  await invalidate(...[...updated].map((id) => ({ companyId, id })));
  // What others have changed or deleted meanwhile is read again.
  for (const [name, each] of changes) {
    const id = idOf(name);
    const read = async () => foundOr404(await store.find(companyId, id), 'event type');
    if (!updated.has(id)) await update(deps, read, each);
  }
}

/** The most tries while other requests change the event type. */
const MAX_TRIES = 10;

type OwnedId = Pick<EventTypeDocument, '_id' | 'companyId'>;

/** Throws ApiError 400 unless the example meets the schema, which payloads can be checked by within their time. */
async function assertExample(
  { checks }: Pick<EventTypesDeps, 'checks'>,
  { _id, companyId, schema: text, example }: Omit<Exampled, 'name'> & OwnedId,
): Promise<void> {
  if (text === null) return;
  const schema = schemaOf(companyId, _id, text);
  const [outcome] = await checks.check(companyId, [{ schema, payload: example ?? '{}' }]);
  if (!outcome) throw new ImpossibleError('a check has an outcome for each payload');
  if ('problems' in outcome) {
    const problems = example === null ? [] : outcome.problems;
    if (problems.length === 0) return;
    throw invalidRequest(
      problems.map(({ path, message }) => ({ path: path.replace('payload', 'example'), message })),
    );
  }
  const message =
    'fault' in outcome
      ? `cannot be used to check payloads: ${outcome.fault}`
      : 'takes too long to check';
  throw invalidRequest([{ path: 'schema', message }]);
}

async function update(
  deps: EventTypesDeps,
  read: () => Promise<EventTypeDocument>,
  changes: EventTypeChanges,
): Promise<Changed<EventTypeDocument>> {
  const { store, invalidate, nowMs } = deps;
  for (let tryNumber = 1; tryNumber <= MAX_TRIES; tryNumber += 1) {
    const seen = await read();
    if (isEmptyUpdate(changes)) return { before: seen, after: seen };
    const fields = changedFields(EVENT_TYPE_FIELDS, changes);
    const isNewSchema = fields.schema !== undefined && fields.schema !== seen.schema;
    const isNewExample = fields.example !== undefined && fields.example !== seen.example;
    if (isNewSchema || isNewExample) await assertExample(deps, { ...seen, ...fields });
    const changed = await store.update(seen, storedChanges(seen, fields, nowMs()));
    if (!changed) continue;
    await invalidate({ companyId: seen.companyId, id: seen._id });
    return changed;
  }
  throw unavailable('changed_by_others');
}

/** Returns the fields with the version of another schema and the time. */
function storedChanges(
  { schema, schemaVersion, updatedAt }: EventTypeDocument,
  fields: Partial<EventTypeDocument>,
  nowMs: number,
): Partial<EventTypeDocument> & { updatedAt: Date } {
  const isNewSchema = fields.schema !== undefined && fields.schema !== schema;
  return {
    ...fields,
    ...(isNewSchema && { schemaVersion: schemaVersion + 1 }),
    // Later than the last time, even within one millisecond: it is what tells two states apart.
    updatedAt: new Date(Math.max(nowMs, updatedAt.getTime() + 1)),
  };
}
