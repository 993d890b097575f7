import type { Hold } from '@posthorn/domain/waiting.ts';
import { type Webhook, wantsEvent } from '@posthorn/domain/webhook.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import { readInParts } from '@posthorn/platform/mongo/read-in-parts.ts';
import type {
  FoundWebhook,
  WebhookPage,
  WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { mongo } from 'mongoose';
import { inSlices, type NextSlice } from '../limits/slices.ts';
import { workMsOf } from '../limits/throttle.ts';
import type { Apps } from '../projects/apps.ts';

interface WebhookSearch {
  /** Part of the URL, the name or an event type, in any case, or the whole id or uid; all when it is left out. */
  text?: string | undefined;
  /** Only webhooks that select it, as `wantsEvent` says. */
  eventType?: string | undefined;
  /** Only webhooks of this project and its apps. */
  projectId?: string | undefined;
  /** Only these webhooks. */
  ids?: readonly string[] | undefined;
  appId?: string | undefined;
  /** Id of the last webhook of the previous page. */
  beforeId?: string | undefined;
  limit: number;
}

/** A webhook in a list. Listing it opens no secret. */
interface ListedWebhook {
  id: string;
  uid: string | null;
  url: string;
  name: string;
  eventTypes: string[];
  disabled: boolean;
  held: Hold | null;
  /** Of a global webhook; null for one of an app. */
  projectId: string | null;
  /** Of a global webhook; null for one of an app. */
  environmentId: string | null;
  appId: string | null;
  /** The app's id while the app is being deleted; null for a global webhook. */
  appName: string | null;
  createdAt: Date;
}

interface FoundWebhooks {
  /** Newest first. */
  webhooks: ListedWebhook[];
  nextCursor: string | null;
}

/** No index has parts of URLs, and a company may have millions of webhooks. To look at so many takes 70 ms. */
const MAX_SCANNED = 1_000;
/** The widest outlines have 16 kB each: about 7 ms of CPU time. */
const PART = 100;

const OUTLINE = {
  uid: 1,
  url: 1,
  name: 1,
  eventTypes: 1,
  disabled: 1,
  held: 1,
  appId: 1,
  projectId: 1,
  environmentId: 1,
  createdAt: 1,
} as const;

type Outline = Pick<WebhookDocument, '_id' | keyof typeof OUTLINE>;

/** Finds webhooks of any app. Searches 1,000 webhooks at most. */
export async function findWebhooks(
  db: mongo.Db,
  companyId: string,
  search: WebhookSearch,
  nextSlice: NextSlice,
): Promise<FoundWebhooks> {
  const { text, eventType, projectId, limit } = search;
  const isWanted = wants(search);
  const isAny = [text, eventType, projectId].every((each) => each === undefined);
  const part = isAny ? Math.min(limit + 1, PART) : PART;
  const found = documentsOf(db, 'webhooks', companyId)
    .find(filterOf(search))
    .sort({ _id: -1 })
    .limit(MAX_SCANNED)
    .project<Outline>(OUTLINE);
  const kept: Outline[] = [];
  let scanned = 0;
  let lastId: string | null = null;
  for await (const outlines of readInParts(found, { batch: part, part })) {
    await nextSlice(workMsOf(bytesOf(outlines)));
    for (const webhook of outlines) {
      if (kept.length === limit) return toPage(db, companyId, kept, lastId);
      scanned += 1;
      lastId = webhook._id;
      if (isWanted(webhook)) kept.push(webhook);
    }
  }
  return toPage(db, companyId, kept, scanned === MAX_SCANNED ? lastId : null);
}

/** Estimates the bytes that were read, for the time that reading them takes. */
function bytesOf(outlines: readonly Outline[]): number {
  let characters = 0;
  for (const { url, name, eventTypes } of outlines) {
    characters += url.length + name.length + eventTypes.join().length;
  }
  return characters;
}

function filterOf({ ids, appId, beforeId }: WebhookSearch) {
  const range = { ...(ids && { $in: [...ids] }), ...(beforeId !== undefined && { $lt: beforeId }) };
  return {
    ...(appId !== undefined && { appId }),
    ...(Object.keys(range).length > 0 && { _id: range }),
  };
}

/** No index has these: what is read is compared. */
function wants({ text, eventType, projectId }: WebhookSearch): (webhook: Outline) => boolean {
  const hasText = text === undefined ? () => true : has(text);
  return (webhook) =>
    (projectId === undefined || webhook.projectId === projectId) &&
    (eventType === undefined || wantsEvent(webhook, eventType)) &&
    hasText(webhook);
}

function has(text: string): (webhook: Outline) => boolean {
  const lower = text.toLowerCase();
  return ({ _id, uid, url, name, eventTypes }) =>
    _id === lower ||
    uid === text ||
    [url, name, ...eventTypes].some((each) => each.toLowerCase().includes(lower));
}

async function toPage(
  db: mongo.Db,
  companyId: string,
  kept: readonly Outline[],
  nextCursor: string | null,
): Promise<FoundWebhooks> {
  const ids = [...new Set(kept.flatMap(({ appId }) => appId ?? []))];
  const apps = documentsOf(db, 'apps', companyId).find({ _id: { $in: ids } });
  const named = await apps.project<{ _id: string; name: string }>({ name: 1 }).toArray();
  const names = new Map(named.map(({ _id, name }) => [_id, name]));
  const webhooks = kept.map(({ _id: id, ...shown }) => {
    const { appId, projectId, environmentId } = shown;
    return {
      id,
      ...shown,
      projectId: appId === null ? projectId : null,
      environmentId: appId === null ? environmentId : null,
      appName: appId === null ? null : (names.get(appId) ?? appId),
    };
  });
  return { webhooks, nextCursor };
}

interface ListWebhooksDeps {
  apps: Pick<Apps, 'get'>;
  webhooks: Pick<WebhookStore, 'list'>;
  logger: Pick<Logger, 'error'>;
}

/**
 * Returns one page in parts, oldest first. A webhook whose stored secrets cannot be decrypted is logged and
 * left out. Throws ApiError 404 for an unknown app.
 */
export async function listWebhooks(
  { apps, webhooks, logger }: ListWebhooksDeps,
  companyId: string,
  page: WebhookPage,
  nextSlice: NextSlice,
): Promise<AsyncIterable<Webhook[]>> {
  if (page.appId !== undefined) await apps.get(companyId, page.appId);
  return opened(inSlices(webhooks.list(companyId, page), nextSlice), logger);
}

async function* opened(
  parts: AsyncIterable<FoundWebhook[]>,
  logger: ListWebhooksDeps['logger'],
): AsyncGenerator<Webhook[]> {
  for await (const found of parts) {
    for (const each of found) logIfUnopened(logger, each);
    yield found.flatMap((each) => (each.kind === 'opened' ? [each] : []));
  }
}

function logIfUnopened(logger: ListWebhooksDeps['logger'], found: FoundWebhook): void {
  if (found.kind === 'opened') return;
  const { keyId, message: reason } = found.problem;
  logger.error({ webhookId: found.id, keyId, reason }, 'webhook cannot be opened');
}
