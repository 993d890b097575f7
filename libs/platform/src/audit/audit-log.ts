import type {
  AuditAction,
  AuditActor,
  AuditChange,
  AuditEvent,
  AuditOutcome,
  AuditTarget,
} from '@posthorn/domain/audit.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { AuditCompletion, AuditStore } from '../mongo/audit/audit-events.ts';

/** Who does what, to what. */
export interface AuditedAction {
  companyId: string;
  action: AuditAction;
  actor: AuditActor;
  target: AuditTarget;
  clientAddress: string | null;
  requestId: string | null;
  /** What is asked for. */
  changes: AuditChange[];
}

/** What is known once the change was made. What is left out stays as it was asked for. */
export interface AuditedResult {
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
  /** Stores that `count` things are shown. When it throws, they must not be. */
  recordRead: (action: AuditedAction, count: number) => Promise<void>;
  /** Returns the same parts. Stores that they are shown before the first one, and their number at the end. */
  recordParts: <Part extends readonly unknown[]>(
    action: AuditedAction,
    parts: AsyncIterable<Part>,
  ) => AsyncIterable<Part>;
}

export interface AuditLogDeps {
  store: Pick<AuditStore, 'insert' | 'complete'>;
  /** Returns the error code when this error says that nothing was changed; null when that is not known. */
  refusalOf: (error: unknown) => string | null;
  observer: AuditObserver;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

export interface AuditObserver {
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
    async recordChange(action, make, resultOf = () => ({})) {
      const event = await start(action);
      const result = await make().catch(async (error: unknown) => {
        await completeRefused(deps, event, deps.refusalOf(error));
        throw error;
      });
      const { createdId = null, changes = event.changes } = resultOf(result);
      const targetId = event.target.id ?? createdId;
      await complete(deps, event, { outcome: 'done', code: null, targetId, changes, count: null });
      return result;
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
        // However the list ended: this many were shown.
        await complete(deps, event, { ...unchanged(event), outcome: 'done', code: null, count });
      }
    },
  };
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

function unchanged({ target, changes }: AuditEvent): Pick<Ending, 'targetId' | 'changes'> {
  return { targetId: target.id, changes };
}

/** The change was made or refused already: the caller must hear of that, not of a failure to write it down. */
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
