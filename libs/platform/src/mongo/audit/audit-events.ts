import type { AuditAction, AuditActor, AuditEvent } from '@posthorn/domain/audit.ts';
import { firstIdAt, isId } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { AuditEventDocument } from '../documents/documents.ts';

/** How an event ended. */
export type AuditCompletion = Pick<AuditEvent, 'outcome' | 'code' | 'changes' | 'count'> & {
  targetId: string | null;
  completedAtMs: number;
};

/** What a list may be limited to; what is left out is not limited. */
export interface AuditFilter {
  action?: AuditAction | undefined;
  /** Id of an API key or of a portal link, or `admin`. */
  actor?: string | undefined;
  targetId?: string | undefined;
  /** When the event was stored, in milliseconds since 1970, both inclusive. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
}

export interface AuditPage extends AuditFilter {
  /** Id of the last event of the page before. */
  cursor?: string | undefined;
  limit: number;
  /** The page ends with the event with which its changes reach this length. */
  maxChars: number;
}

export interface ListedEvents {
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

export function createAuditStore(db: mongo.Db): AuditStore {
  const eventsOf = (companyId: string) => documentsOf(db, 'auditEvents', companyId);
  return {
    insert: (event) => eventsOf(event.companyId).insert(toDocument(event)),
    async complete(companyId, _id, { targetId, completedAtMs, ...ended }) {
      const $set = { ...ended, targetId, completedAt: new Date(completedAtMs) };
      await eventsOf(companyId).updateMany({ _id }, { $set });
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
    targetKind: target.kind,
    targetId: target.id,
    createdAt: new Date(createdAtMs),
    completedAt: completedAtMs === null ? null : new Date(completedAtMs),
  };
}

function toEvent(document: AuditEventDocument): AuditEvent {
  const { _id, actor, targetKind, targetId, createdAt, completedAt, ...same } = document;
  return {
    id: _id,
    ...same,
    actor: actorOf(actor),
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
  }
}

function actorOf(text: string): AuditActor {
  const kind = KEYLESS.find((each) => each === text);
  if (kind) return { kind };
  return isId('plnk', text)
    ? { kind: 'portalLink', linkId: text }
    : { kind: 'apiKey', keyId: text };
}
