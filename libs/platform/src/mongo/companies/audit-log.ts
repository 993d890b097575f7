import {
  AUDIT_OUTCOMES,
  type AuditAction,
  type AuditActor,
  type AuditChange,
  type AuditEvent,
  type AuditOutcome,
  type AuditTarget,
} from '@posthorn/domain/audit.ts';
import { firstIdAt, type IdPrefix, isId } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { Counter, type Registry } from 'prom-client';
import type { Logger } from '../../service/logger.ts';
import { createBatcher } from '../../async/batcher.ts';
import { startAtZero } from '../../service/metrics.ts';
import { collection } from '../collections.ts';
import { createInsertTogether } from '../write-together.ts';
import { documentsOf } from '../company-documents.ts';
import type { AuditEventDocument } from '../documents.ts';

/** Who does what, to what. */
export interface AuditedAction {
  companyId: string;
  action: AuditAction;
  actor: AuditActor;
  target: AuditTarget;
  clientAddress: string | null;
  requestId: string | null;
  /** The changes that are asked for. */
  changes: AuditChange[];
}

/** The outcome of a change. A field that is absent stays as it was in the action. */
export interface AuditedResult {
  /** The action and its target, when they are known only now. */
  action?: AuditAction;
  id?: string | null;
  /** The target, when the action named none. */
  createdId?: string | null;
  changes?: AuditChange[] | undefined;
}

/** Records actions so that none is lost silently (docs/decisions/0026-audit-log.md). */
export interface AuditLog {
  /**
   * Stores the event, makes the change, then stores how it ended. Throws what the store throws, before anything
   * is changed, when the event cannot be stored; otherwise what `make` throws.
   */
  recordChange: <Result>(
    action: AuditedAction,
    make: () => Promise<Result>,
    resultOf?: (result: Result) => AuditedResult,
  ) => Promise<Result>;
  /**
   * The same for a change that begins with reads: `make` is called at once, and awaits `isStored` before it changes
   * anything, so that the reads and the event's write take place together.
   */
  recordAfterReads: <Result>(
    action: AuditedAction,
    make: (isStored: Promise<unknown>) => Promise<Result>,
    resultOf?: (result: Result) => AuditedResult,
  ) => Promise<Result>;
  /** Stores that `count` things are shown. When it throws, they must not be. */
  recordRead: (action: AuditedAction, count: number) => Promise<void>;
  /** Returns the same parts. Stores that they are shown before the first one, and their number at the end. */
  recordParts: <Part extends readonly unknown[]>(
    action: AuditedAction,
    parts: AsyncIterable<Part>,
  ) => AsyncIterable<Part>;
}

interface AuditLogDeps {
  store: Pick<AuditStore, 'insert' | 'complete'>;
  /** Returns the error code of an error that means nothing was changed; null for any other error. */
  refusalOf: (error: unknown) => string | null;
  observer: AuditObserver;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

interface AuditObserver {
  /** An event with this outcome was written. */
  stored: (outcome: AuditOutcome) => void;
  /** An event stays `started`, because this outcome of it could not be written. */
  notCompleted: (event: { id: string; outcome: AuditOutcome; error: unknown }) => void;
}

type Ending = Omit<AuditCompletion, 'completedAtMs'>;

export function createAuditLog(deps: AuditLogDeps): AuditLog {
  const start = (action: AuditedAction): Promise<AuditEvent> =>
    insert(deps, startedEvent(deps, action));
  return {
    async recordChange(action, make, resultOf) {
      const event = await start(action);
      return recordResult(deps, event, make(), resultOf);
    },
    async recordAfterReads(action, make, resultOf) {
      const started = start(action);
      const made = make(started);
      // Of two failures, that of the event is the one that says that nothing was changed.
      made.catch(() => undefined);
      return recordResult(deps, await started, made, resultOf);
    },
    async recordRead(action, count) {
      const event = startedEvent(deps, action);
      await insert(deps, { ...event, outcome: 'done', count, completedAtMs: event.createdAtMs });
    },
    async *recordParts(action, parts) {
      const event = await start(action);
      let count = 0;
      try {
        for await (const part of parts) {
          count += part.length;
          yield part;
        }
      } finally {
        // Also when the list ends early: so many were shown.
        await complete(deps, event, { ...unchanged(event), outcome: 'done', code: null, count });
      }
    },
  };
}

async function recordResult<Result>(
  deps: AuditLogDeps,
  event: AuditEvent,
  made: Promise<Result>,
  resultOf: (result: Result) => AuditedResult = () => ({}),
): Promise<Result> {
  const result = await made.catch(async (error: unknown) => {
    await completeRefused(deps, event, deps.refusalOf(error));
    throw error;
  });
  const done = resultOf(result);
  await complete(deps, event, {
    action: done.action ?? event.action,
    outcome: 'done',
    code: null,
    targetId: done.id ?? event.target.id ?? done.createdId ?? null,
    changes: done.changes ?? event.changes,
    count: null,
  });
  return result;
}

function startedEvent({ newId, nowMs }: AuditLogDeps, action: AuditedAction): AuditEvent {
  return {
    id: newId('aud'),
    ...action,
    outcome: 'started',
    code: null,
    count: null,
    createdAtMs: nowMs(),
    completedAtMs: null,
  };
}

async function insert({ store, observer }: AuditLogDeps, event: AuditEvent): Promise<AuditEvent> {
  await store.insert(event);
  observer.stored(event.outcome);
  return event;
}

async function completeRefused(
  deps: AuditLogDeps,
  event: AuditEvent,
  code: string | null,
): Promise<void> {
  if (code === null) return;
  await complete(deps, event, { ...unchanged(event), outcome: 'failed', code, count: null });
}

function unchanged({
  action,
  target,
  changes,
}: AuditEvent): Pick<Ending, 'action' | 'targetId' | 'changes'> {
  return { action, targetId: target.id, changes };
}

/** The change was made or refused already: the caller gets that result, not a failure of the audit log. */
async function complete(
  { store, observer, nowMs }: AuditLogDeps,
  { companyId, id }: AuditEvent,
  ending: Ending,
): Promise<void> {
  try {
    await store.complete(companyId, id, { ...ending, completedAtMs: nowMs() });
    observer.stored(ending.outcome);
  } catch (error) {
    observer.notCompleted({ id, outcome: ending.outcome, error });
  }
}

/** Counts what is written to the audit log, and logs what could not be completed. */
export function createAuditMetrics(
  registry: Registry,
  logger: Pick<Logger, 'error'>,
): AuditObserver {
  const registers = [registry];
  const events = new Counter({
    name: 'posthorn_audit_events_total',
    help: 'Writes to the audit log, by outcome. A change writes started, then done or failed.',
    labelNames: ['outcome'],
    registers,
  });
  startAtZero(events, 'outcome', AUDIT_OUTCOMES);
  const notCompleted = new Counter({
    name: 'posthorn_audit_events_not_completed_total',
    help: 'Audit events whose outcome could not be stored, so that they stay started.',
    registers,
  });
  return {
    stored: (outcome) => {
      events.inc({ outcome });
    },
    notCompleted: ({ id, outcome, error }) => {
      notCompleted.inc();
      logger.error({ err: error, auditEventId: id, outcome }, 'audit event not completed');
    },
  };
}

/** How an event ended. */
type AuditCompletion = Pick<AuditEvent, 'action' | 'outcome' | 'code' | 'changes' | 'count'> & {
  targetId: string | null;
  completedAtMs: number;
};

/** Limits of a list. A field that is absent sets no limit. */
export interface AuditFilter {
  action?: AuditAction | undefined;
  /** Id of an API key, of a portal link or of a person, or `admin`. */
  actor?: string | undefined;
  targetId?: string | undefined;
  /** When the event was stored, in milliseconds since 1970, both inclusive. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
}

interface AuditPage extends AuditFilter {
  /** Id of the last event of the page before. */
  cursor?: string | undefined;
  limit: number;
  /** The page ends with the event with which its changes reach this length. */
  maxChars: number;
}

interface ListedEvents {
  /** Newest first. */
  events: AuditEvent[];
  nextCursor: string | null;
}

export interface AuditStore {
  insert: (event: AuditEvent) => Promise<void>;
  complete: (companyId: string, id: string, completion: AuditCompletion) => Promise<void>;
  list: (companyId: string, page: AuditPage) => Promise<ListedEvents>;
  /** Oldest first. Takes null for the events of every company and of the installation. */
  export: (
    companyId: string | null,
    span: Pick<AuditFilter, 'fromMs' | 'toMs'>,
  ) => AsyncIterable<AuditEvent>;
}

/** The actors that have no key, where the others have its id. */
const KEYLESS = ['admin', 'system'] as const;

/** Changes that are made at the same time share the writes of their results. */
const RESULTS = { maxItems: 100, lingerMs: 0, maxInFlight: 1 };
/**
 * A result is acknowledged by the primary alone, which takes 1 ms in place of 4: the response waits for it. An election right
 * after it may leave the event `started`, as a crash does.
 */
const RESULTS_CONCERN = { w: 1 } as const;

export function createAuditStore(db: mongo.Db): AuditStore {
  const eventsOf = (companyId: string) => documentsOf(db, 'auditEvents', companyId);
  const events = collection(db, 'auditEvents');
  const insertTogether = createInsertTogether(db, 'auditEvents');
  const updates = createBatcher<mongo.AnyBulkWriteOperation<AuditEventDocument>, undefined>({
    ...RESULTS,
    run: async (batch) => {
      await events.bulkWrite(batch, { ordered: false, writeConcern: RESULTS_CONCERN });
      return batch.map(() => undefined);
    },
  });
  return {
    insert: (event) => insertTogether(toDocument(event)),
    complete(companyId, _id, { targetId, completedAtMs, ...ended }) {
      const $set = { ...ended, targetId, completedAt: new Date(completedAtMs) };
      return updates.add({ updateOne: { filter: { _id, companyId }, update: { $set } } });
    },
    async list(companyId, { limit, maxChars, ...page }) {
      const found = eventsOf(companyId).find(filterOf(page));
      found
        .sort({ _id: -1 })
        .limit(limit + 1)
        .batchSize(BATCH);
      return toPage(found, limit, maxChars);
    },
    async *export(companyId, span) {
      const filter = { _id: idsIn(span) };
      const all = collection(db, 'auditEvents');
      const found = companyId === null ? all.find(filter) : eventsOf(companyId).find(filter);
      for await (const document of found.sort({ _id: 1 })) yield toEvent(document);
    },
  };
}

/** The longest event has 30 kB: event types before and after. */
const BATCH = 20;

async function toPage(
  found: AsyncIterable<AuditEventDocument>,
  limit: number,
  maxChars: number,
): Promise<ListedEvents> {
  const events: AuditEvent[] = [];
  let chars = 0;
  for await (const document of found) {
    if (events.length === limit || chars >= maxChars) {
      return { events, nextCursor: events.at(-1)?.id ?? null };
    }
    events.push(toEvent(document));
    chars += JSON.stringify(document.changes).length;
  }
  return { events, nextCursor: null };
}

type OwnFilter = mongo.Filter<Omit<AuditEventDocument, 'companyId'>>;

function filterOf({ action, actor, targetId, ...span }: Omit<AuditPage, 'limit' | 'maxChars'>) {
  const filter: OwnFilter = { _id: idsIn(span) };
  if (action !== undefined) filter.action = action;
  if (actor !== undefined) filter.actor = actor;
  if (targetId !== undefined) filter.targetId = targetId;
  return filter;
}

/** Ids begin with their time. */
function idsIn({ fromMs = 0, toMs, cursor }: Pick<AuditPage, 'fromMs' | 'toMs' | 'cursor'>) {
  const end = toMs === undefined ? undefined : firstIdAt('aud', toMs + 1);
  const ends = [end, cursor].filter((each) => each !== undefined).sort();
  const [before] = ends;
  return { $gte: firstIdAt('aud', fromMs), ...(before !== undefined && { $lt: before }) };
}

function toDocument(event: AuditEvent): AuditEventDocument {
  const { id, actor, target, createdAtMs, completedAtMs, ...same } = event;
  return {
    _id: id,
    ...same,
    actor: actorText(actor),
    ...(actor.kind === 'person' && { actorName: actor.name }),
    targetKind: target.kind,
    targetId: target.id,
    createdAt: new Date(createdAtMs),
    completedAt: completedAtMs === null ? null : new Date(completedAtMs),
  };
}

function toEvent(document: AuditEventDocument): AuditEvent {
  const { _id, actor, actorName, targetKind, targetId, createdAt, completedAt, ...same } = document;
  return {
    id: _id,
    ...same,
    actor: actorOf(actor, actorName ?? null),
    target: { kind: targetKind, id: targetId },
    createdAtMs: createdAt.getTime(),
    completedAtMs: completedAt?.getTime() ?? null,
  };
}

function actorText(actor: AuditActor): string {
  switch (actor.kind) {
    case 'admin':
    case 'system':
      return actor.kind;
    case 'apiKey':
      return actor.keyId;
    case 'portalLink':
      return actor.linkId;
    case 'person':
      return actor.personId;
  }
}

function actorOf(text: string, name: string | null): AuditActor {
  const kind = KEYLESS.find((each) => each === text);
  if (kind) return { kind };
  if (isId('usr', text)) return { kind: 'person', personId: text, name };
  return isId('plnk', text)
    ? { kind: 'portalLink', linkId: text }
    : { kind: 'apiKey', keyId: text };
}
