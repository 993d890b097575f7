import type { JsonObject } from '@posthorn/domain/filter.ts';
import {
  type ImportedEventType,
  type Places,
  readOpenApi,
} from '@posthorn/domain/openapi/read-openapi.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import type { EventTypeDocument } from '@posthorn/platform/mongo/documents.ts';
import { slicesOf as slicesBySize } from '@posthorn/platform/mongo/messages/stats-documents.ts';
import { ApiError, invalidRequest, MAX_PROBLEMS, type Problem } from '../api-error.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { Projects } from '../projects/projects.ts';
import type { Quotas } from '../projects/quotas.ts';
import type { EventTypeChanges, EventTypes } from './event-types.ts';

/*
 * The import of event types from an OpenAPI document (docs/contract.md C28). All of the document is checked before the
 * first write. A process that ends between the writes leaves a part, and a repeat makes the others.
 */

interface ImportDeps {
  eventTypes: Pick<EventTypes, 'createEach' | 'updateEach' | 'readAll' | 'assertExample'>;
  projects: Pick<Projects, 'get'>;
  quotas: Pick<Quotas, 'assertWithin'>;
}

export interface EventTypeImport {
  companyId: string;
  projectId: string;
  document: JsonObject;
  /** Archives what the document does not have. */
  archiveMissing: boolean;
  /** Changes nothing. */
  dryRun: boolean;
  /** Names the request that makes event types. */
  creationId: string;
  nextSlice: NextSlice;
}

export type ImportChange = 'created' | 'updated' | 'archived';

export interface ImportedEventTypes {
  unchanged: number;
  /** By name. */
  changes: readonly { name: string; change: ImportChange }[];
}

/** Throws ApiError 404 for an unknown project, 400 with the problems of the document, 409 when it has too many event types. */
export type ImportEventTypes = (request: EventTypeImport) => Promise<ImportedEventTypes>;

export function createImportEventTypes(deps: ImportDeps): ImportEventTypes {
  return async (request) => {
    const { companyId, projectId } = request;
    await deps.projects.get(companyId, projectId);
    const given = await readAll(request);
    const plan = await planImport(deps, request, given);
    deps.quotas.assertWithin('QUOTA_EVENT_TYPES_PER_PROJECT', plan.count);
    await assertExamples(deps, request, plan);
    if (!request.dryRun) await write(deps, request, plan);
    const changes = plan.changes.map(({ name, change }) => ({ name, change }));
    return { unchanged: plan.unchanged, changes };
  };
}

/** Knows where the document has what is checked last. */
type GivenEventType = ImportedEventType & { places: Places };

/** Of all schemas with what they refer to, and of all examples. One component of 32 KiB may be in 2,000 schemas. */
const MAX_STORED_CHARS = 8_388_608;

/** Throws ApiError 400 with the problems of all webhooks, up to 100. */
async function readAll({
  document,
  nextSlice,
}: EventTypeImport): Promise<Map<string, GivenEventType>> {
  const read = readOpenApi(document);
  if ('problem' in read) throw invalidRequest([shown(read.problem)]);
  const given = new Map<string, GivenEventType>();
  const problems: Problem[] = [];
  let chars = 0;
  for (const { eventType, places, problems: own } of read.eventTypes) {
    problems.push(...own.map(shown));
    if (problems.length >= MAX_PROBLEMS) break;
    if (eventType) {
      const { name, schema, example } = eventType;
      given.set(name, { ...eventType, places });
      chars += (schema?.length ?? 0) + (example?.length ?? 0);
    }
    if (chars > MAX_STORED_CHARS) {
      const message = `has more than ${MAX_STORED_CHARS} characters in its schemas, with their components, and examples`;
      throw invalidRequest([{ path: 'document', message }]);
    }
    await nextSlice();
  }
  if (problems.length > 0) throw invalidRequest(problems);
  return given;
}

const shown = ({ path, message }: { path: readonly string[]; message: string }): Problem => ({
  path: ['document', ...path].join('.'),
  message,
});

type Change =
  | { name: string; change: 'created' | 'updated'; given: GivenEventType }
  | { name: string; change: 'archived' };

interface Plan {
  /** Event types of the project after the import. */
  count: number;
  unchanged: number;
  /** By name. */
  changes: Change[];
}

/** Compares the document with the catalogue. */
async function planImport(
  { eventTypes }: ImportDeps,
  { companyId, projectId, archiveMissing, nextSlice }: EventTypeImport,
  given: ReadonlyMap<string, GivenEventType>,
): Promise<Plan> {
  const missing = new Map(given);
  const changes: Change[] = [];
  let unchanged = 0;
  for await (const part of eventTypes.readAll(companyId, { projectId })) {
    await nextSlice();
    for (const stored of part) {
      const { name } = stored;
      const wanted = given.get(name);
      missing.delete(name);
      if (wanted && !isSame(stored, wanted))
        changes.push({ name, change: 'updated', given: wanted });
      else if (!wanted && archiveMissing && !stored.archived)
        changes.push({ name, change: 'archived' });
      else unchanged += 1;
    }
  }
  for (const [name, wanted] of missing) changes.push({ name, change: 'created', given: wanted });
  const count = unchanged + changes.length;
  const order = (one: Change, other: Change): number => (one.name < other.name ? -1 : 1);
  return { count, unchanged, changes: changes.toSorted(order) };
}

function isSame(stored: EventTypeDocument, wanted: GivenEventType): boolean {
  const { places: _places, ...fields } = wanted;
  return Object.entries(fields).every(([field, value]) => {
    return stored[field as keyof ImportedEventType] === value;
  });
}

/** The worker checks one after the other: more would only wait. */
const CHECKS_AT_ONCE = 8;

/** Throws ApiError 400 with the problems of examples that do not meet their schemas, up to 100. */
async function assertExamples(
  deps: ImportDeps,
  request: EventTypeImport,
  { changes }: Plan,
): Promise<void> {
  const given = changes.flatMap((each) => (each.change === 'archived' ? [] : [each.given]));
  const problems: Problem[] = [];
  for (const some of slicesOf(given, CHECKS_AT_ONCE)) {
    const found = await Promise.all(some.map((each) => exampleProblems(deps, request, each)));
    problems.push(...found.flat());
    if (problems.length >= MAX_PROBLEMS) break;
  }
  if (problems.length > 0) throw invalidRequest(problems);
}

async function exampleProblems(
  { eventTypes }: ImportDeps,
  { companyId, projectId }: EventTypeImport,
  { places, ...given }: GivenEventType,
): Promise<Problem[]> {
  try {
    await eventTypes.assertExample(companyId, projectId, given);
    return [];
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    return error.problems.map(({ path, message }) => {
      const [field, ...inner] = path.split('.');
      const place = field === 'schema' ? places.schema : places.example;
      return shown({ path: [...place, ...inner], message });
    });
  }
}

/** One write has at most 64 event types, and 512 KiB of their schemas and examples unless one alone has more. */
const WRITE_SIZE = 524_288;
const SIZE_OF_ANY = WRITE_SIZE / 64;
/** Each is read with up to 83 kB before its change. */
const UPDATES_AT_ONCE = 12;

const sizeOf = ({ schema, example }: GivenEventType): number =>
  SIZE_OF_ANY + (schema?.length ?? 0) + (example?.length ?? 0);

async function write(
  { eventTypes }: ImportDeps,
  { companyId, projectId, creationId, nextSlice }: EventTypeImport,
  { changes }: Plan,
): Promise<void> {
  const isNew = (each: Change) => each.change === 'created';
  const created = changes.flatMap((each) => (isNew(each) && 'given' in each ? [each.given] : []));
  const updates = changes.filter((each) => !isNew(each)).map(updateOf);
  for (const some of slicesBySize(created, WRITE_SIZE, sizeOf)) {
    await nextSlice();
    const given = some.map(({ places: _places, ...fields }) => fields);
    const known = await eventTypes.createEach(companyId, {
      projectId,
      creationId,
      eventTypes: given,
    });
    // Another request has made these since.
    updates.push(...changes.filter(({ name }) => known.has(name)).map(updateOf));
  }
  for (const some of slicesOf(updates, UPDATES_AT_ONCE)) {
    await nextSlice();
    await eventTypes.updateEach(companyId, projectId, new Map(some));
  }
}

function updateOf(change: Change): [name: string, changes: EventTypeChanges] {
  if (change.change === 'archived') return [change.name, { archived: true }];
  const { places: _places, name, ...fields } = change.given;
  return [name, fields];
}
