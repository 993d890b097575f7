import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { collection, type CollectionName } from '@posthorn/platform/mongo/collections.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import { insertIn } from '../stores/stored-documents.ts';

/** The company, project, app, webhook and API key that a part of the filler documents belongs to. */
export interface FillerOwner {
  companyId: string;
  projectId: string;
  appId: string;
  webhookId: string;
  /** An API key. */
  keyId: string;
}

const STATUSES = ['delivered', 'delivered', 'delivered', 'pending', 'exhausted', 'cancelled'];

/**
 * Inserts documents into all collections, half of them of this company, so that the query planner has a choice. Writes
 * directly to MongoDB, because thousands of API requests would take minutes.
 */
export async function insertFillerDocuments(
  db: Database,
  own: FillerOwner,
  size: number,
): Promise<void> {
  const now = new Date();
  const times = { createdAt: now, updatedAt: now };
  const insert = (name: CollectionName, make: (n: number) => object): Promise<unknown> =>
    collection(db, name).insertMany(Array.from({ length: size }, (_, n) => make(n)) as never);
  const companyOf = (n: number): string => (n % 2 === 0 ? own.companyId : `comp_${n % 50}`);
  const named = (prefix: Parameters<typeof systemIds>[0], n: number) => ({
    _id: systemIds(prefix),
    companyId: companyOf(n),
    name: `Filler ${n}`,
    ...times,
  });

  await insert('companies', (n) => ({
    _id: systemIds('comp'),
    name: `Filler ${n}`,
    createdAt: now,
  }));
  await insert('apiKeys', (n) => ({ ...named('key', n), hash: `hash ${n}`, prefix: 'phk_' }));
  await insert('projects', (n) => ({ ...named('proj', n), environment: 'development' }));
  const owned = (n: number) => (n % 4 === 0 ? own.projectId : `proj_${n % 50}`);
  // A list, and an export, read the whole catalogue of a project, which has 2,000 event types at most.
  const catalogued = (n: number) => (n % 8 === 0 ? own.projectId : `proj_${n % 50}`);
  const eventType = (n: number) => ({
    _id: `${catalogued(n)}/filler.${n}`,
    companyId: companyOf(n),
    projectId: catalogued(n),
    name: `filler.${n}`,
    description: '',
    group: null,
    schema: null,
    schemaVersion: 1,
    example: null,
    deprecated: false,
    archived: n % 3 === 0,
    ...times,
  });
  await insert('eventTypes', eventType);
  await insert('eventTypeVersions', (n) => ({ ...eventType(n), version: 1, schema: null }));
  await insert('apps', (n) => ({
    ...named('app', n),
    environment: 'development',
    projectId: owned(n),
  }));
  // Only of other companies: these documents have no sealed fields that could be opened.
  await insert('webhooks', (n) => ({
    ...named('wh', n),
    companyId: `comp_${n % 50}`,
    projectId: `proj_${n % 50}`,
    appId: `app_${n % 50}`,
  }));
  await insertDeliveries(db, own, size, companyOf);
  await insert('resends', (n) => ({
    ...named('rsnd', n),
    webhookId: own.webhookId,
    status: 'done',
    page: [],
  }));
  await insert('filterCancellations', (n) => ({
    ...named('cncl', n),
    filter: n % 2 === 0 ? { appId: own.appId } : { webhookId: own.webhookId },
    status: 'done',
    beforeMs: 0,
    cancelled: 0,
    stopsUntil: new Date(0),
    createdAt: now,
    updatedAt: now,
  }));
  const counted = (n: number) => ({ _id: `wh_${n % 50}/${n}`, companyId: companyOf(n), at: now });
  await insert('stats', (n) => ({ ...counted(n), kind: 'webhook', total: {}, minutes: {} }));
  await insert('usage', counted);
  await insert('auditEvents', (n) => ({ ...auditEvent(own, n), createdAt: now }));
}

/** Each filter matches a third of them, and two filters together none: without an index for both that would be a scan. */
function auditEvent(own: FillerOwner, n: number): object {
  return {
    _id: systemIds('aud'),
    companyId: n % 10 === 0 ? 'comp_1' : own.companyId,
    action: n % 3 === 0 ? 'webhook.updated' : 'webhook.secrets_read',
    actor: n % 3 === 1 ? own.keyId : `key_${n % 50}`,
    targetKind: 'webhook',
    targetId: n % 3 === 2 ? own.webhookId : `wh_${n % 50}`,
    changes: [],
  };
}

async function insertDeliveries(
  db: Database,
  own: FillerOwner,
  size: number,
  companyOf: (n: number) => string,
): Promise<void> {
  const createdAt = new Date();
  const messages = Array.from({ length: size }, (_, n) => ({
    _id: systemIds('msg'),
    companyId: companyOf(n),
    payload: '{}',
    createdAt,
    appId: n % 4 === 0 ? own.appId : null,
    targets: [n % 6 === 0 ? own.webhookId : `wh_${n % 50}`],
    publisherId: 'gw_filler',
    requestId: `filler-${n}`,
    ...(n % 3 === 0 && { tags: ['filler', `filler-${n}`] }),
    ...(n % 3 === 1 && { externalId: 'filler' }),
  }));
  const deliveries = messages.map(({ _id: messageId, companyId, appId, targets }, n) => ({
    _id: deliveryIdOf(messageId, String(targets[0])),
    messageId,
    companyId,
    appId,
    webhookId: targets[0],
    status: STATUSES[(n >> 1) % STATUSES.length],
    reason: null,
    attemptCount: 0,
    attempts: [],
    nextAttemptAt: null,
    createdAt,
    updatedAt: createdAt,
  }));
  await insertIn(db.days.messages, messages);
  await insertIn(db.days.deliveries, deliveries as DeliveryDocument[]);
}
