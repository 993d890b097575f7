import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openValues } from '@posthorn/domain/webhook-fields.ts';
import type { forAttempts, Message } from '@posthorn/domain/message.ts';
import { DAY_MS } from '@posthorn/domain/ids.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { toDocument } from '@posthorn/platform/mongo/messages/messages.ts';
import type { OpenedWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { createdRecords } from '@posthorn/platform/records/created-records.ts';
import {
  monotonicClockMs,
  systemClockMs,
  systemIds,
} from '@posthorn/platform/service/clock-and-ids.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import mongoose from 'mongoose';
import { Registry } from 'prom-client';
import type { createAcceptMessages } from '../../services/gateway/src/accept/accept-message.ts';
import type {
  AcceptOne,
  createKeyedAccept,
} from '../../services/gateway/src/accept/idempotency.ts';
import type { createTargetResolver } from '../../services/gateway/src/accept/targets.ts';
import type { Gateway } from '../../services/gateway/src/gateway.ts';
import type { readBody } from '../../services/gateway/src/http/body.ts';
import type { CheckedRequest } from '../../services/gateway/src/http/route.ts';
import type { messageRoutes } from '../../services/gateway/src/routes/messages.ts';

/** Accepts the message of a request with this body, and resolves with the text of the response. */
export type AcceptHere = (body: Buffer) => Promise<string>;

/** The app of the only webhook that there is. It has no filter, and its project the policy `open`. */
export const APP_ID = 'app_00000000000000000000000001';

const COMPANY_ID = 'comp_00000000000000000000000001';
const PROJECT_ID = 'proj_00000000000000000000000001';

/** Functions of a revision, of which an older one may have another type: it ignores what it does not know. */
interface Acceptance {
  createAcceptMessages: typeof createAcceptMessages;
  createKeyedAccept: typeof createKeyedAccept;
  createTargetResolver: typeof createTargetResolver;
  createdRecords: typeof createdRecords;
  forAttempts: typeof forAttempts;
  messageRoutes: typeof messageRoutes;
  readBody: typeof readBody;
  toDocument: typeof toDocument;
}

const SOURCES = [
  'services/gateway/src/accept/accept-message.ts',
  'services/gateway/src/accept/idempotency.ts',
  'services/gateway/src/accept/targets.ts',
  'services/gateway/src/http/body.ts',
  'services/gateway/src/routes/messages.ts',
  'libs/domain/src/message.ts',
  'libs/platform/src/mongo/messages/messages.ts',
  'libs/platform/src/records/created-records.ts',
];

/**
 * Returns the acceptance of the sources below `root`, in this process: the body is read and checked, targets come from a
 * warm cache, the message is built, encoded for MongoDB and Kafka, and its response written. Stores and HTTP are left out:
 * they are the same whatever a feature adds here, and would hide it.
 */
export async function loadAcceptance(root: string): Promise<AcceptHere> {
  const loading = SOURCES.map((path) => import(pathToFileURL(join(root, path)).href));
  const modules = (await Promise.all(loading)) as Partial<Acceptance>[];
  const revision = modules.reduce((all, each) => ({ ...all, ...each }), {}) as Acceptance;
  const gateway = { acceptOne: openAccept(revision), hasRoomToAccept: () => true, logger: LOGGER };
  const routes = revision.messageRoutes(gateway as Partial<Gateway> as Gateway);
  const route = routes.find(({ operationId }) => operationId === 'createMessage');
  if (!route?.body) throw new ImpossibleError('no route creates messages');
  const { body: schema, handle } = route;
  return async (bytes) => {
    const request = { ...REQUEST, body: revision.readBody(bytes, schema), deadline: signal };
    const { data } = await handle(request as Partial<CheckedRequest> as CheckedRequest);
    return JSON.stringify(data);
  };
}

const LOGGER = createLogger('bench', 'silent');

/** As the pipeline of a gateway makes one for each request that may have to wait. */
const signal = (): AbortSignal => new AbortController().signal;

const REQUEST: Partial<CheckedRequest> = {
  caller: { companyId: COMPANY_ID, keyId: 'key_1', scopes: ['messages:write'], appId: null },
  requestId: '00000000-0000-4000-8000-000000000000',
  header: () => undefined,
  reserve: () => undefined,
  nextSlice: () => Promise.resolve(),
};

const WEBHOOK: OpenedWebhook = {
  ...openValues({ url: 'http://127.0.0.1:9/hook', projectId: PROJECT_ID, appId: APP_ID }),
  kind: 'opened',
  id: 'wh_00000000000000000000000001',
  companyId: COMPANY_ID,
  secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  previousSecret: null,
  customHeaders: [],
  authMethod: { method: 'basic', username: 'user', password: 'password' },
  tls: null,
  createdAtMs: 1_000,
  updatedAtMs: 1_000,
};

const unused = (): never => {
  throw new ImpossibleError('a message without an idempotency key needs this');
};

function openAccept(revision: Acceptance): AcceptOne {
  const { accept } = revision.createAcceptMessages({
    targets: openTargets(revision),
    checks: { check: unused },
    outbox: { store: (messages) => encode(revision, messages), whenPublished: unused },
    counts: { add: () => undefined, hasRoom: () => true },
    responses: { seal: unused },
    publisherId: () => 'gw_00000000000000000000000001',
    retentionMs: () => 30 * DAY_MS,
    acceptQueueBytes: 64 * 2 ** 20,
    maxLingerMs: 0,
    newId: systemIds,
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
    logger: LOGGER,
  });
  const messages = { findKeyHolders: unused, findAccepted: unused, releaseKeys: unused };
  return revision.createKeyedAccept({
    accept,
    messages,
    webhooks: { findTarget: unused },
    responses: { open: unused },
    outbox: { ensurePublished: unused },
    registry: new Registry(),
  }).acceptOne;
}

function openTargets({ createTargetResolver: create }: Acceptance) {
  const owner = { companyId: COMPANY_ID, projectId: PROJECT_ID, notStored: {} };
  return create({
    cacheBytes: 2 ** 20,
    maxTargets: 10_000,
    webhooks: { findTarget: unused, appOf: unused, findTargets: unused },
    readApps: () => Promise.resolve(new Map([[APP_ID, { ...owner, webhooks: [WEBHOOK] }]])),
    notStoredByApp: unused,
    policyOf: () => Promise.resolve('open'),
    eventTypeOf: unused,
    areChangesFollowed: () => true,
    changesOfUnknownApps: () => 0,
    onUndecided: unused,
    monotonicMs: monotonicClockMs,
  });
}

/** As the store and the outbox do, without what they send. */
function encode(
  { toDocument: documentOf, createdRecords: recordsOf, forAttempts: attempted }: Acceptance,
  messages: readonly Message[],
): Promise<'stored'[]> {
  for (const message of messages) {
    mongoose.mongo.BSON.serialize(documentOf(message));
    recordsOf('message-created', attempted(message));
  }
  return Promise.resolve(messages.map(() => 'stored'));
}
