import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { FoundWebhook, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import {
  describeWebhook,
  describeWebhookWithAuth,
  webhook as webhookAnswer,
  webhookWithAuth,
} from '../../http/answers/webhook.ts';
import { notFound } from '../../http/api-error.ts';
import type { ChangeWebhook } from '../../webhooks/change-webhook.ts';
import { route, type Route } from '../../http/route.ts';
import { newSecret } from '../../webhooks/new-secret.ts';
import type { RemoveTree } from '../../removal/remove-tree.ts';
import { idText, limit, skip } from './fields.ts';
import {
  authMethodOf,
  changesOf,
  createWebhookBody,
  updateProblems,
  updateWebhookBody,
  type CreateWebhookBody,
} from './webhook-body.ts';

export interface WebhookRouteDeps {
  db: mongo.Db;
  webhooks: WebhookStore;
  policy: EgressPolicy;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  /** Tells every process, this one first, to forget what it remembers of a webhook or app. */
  invalidate: (invalidation: Invalidation) => Promise<void>;
  remove: RemoveTree;
  changeWebhook: ChangeWebhook;
  logger: Pick<Logger, 'error'>;
}

const tag = 'Webhooks';
const path = '/webhooks/:webhookId';

const listQuery = z.object({
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
  limit: limit(1_000, 1_000),
  skip,
});

export function webhookRoutes(deps: WebhookRouteDeps): Route[] {
  return [
    createWebhook(deps),
    listWebhooks(deps),
    getWebhook(deps),
    updateWebhook(deps),
    deleteWebhook(deps),
  ];
}

function createWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'post',
    path: '/webhooks',
    tag,
    summary: 'Create a webhook',
    description:
      'Of an app (`appId`), or a global one (`projectId` with `environmentId`). `authMethod` decides which of the credential fields are needed.',
    body: createWebhookBody(deps.policy),
    answer: { status: 201, message: 'Webhook created', data: webhookWithAuth },
    errors: ['not_found'],
    async handle({ caller: { companyId }, body: { value } }) {
      const projectId = await projectOf(deps.db, companyId, value);
      const made = newWebhook(deps, companyId, projectId, value);
      await deps.webhooks.insert(made);
      await projectOf(deps.db, companyId, value).catch(async (error: unknown) => {
        // App or project was deleted meanwhile: no webhook may outlive its owner.
        await deps.webhooks.deleteOne(companyId, made.id);
        throw error;
      });
      await deps.invalidate({ companyId, id: made.appId ?? made.id });
      return { data: describeWebhookWithAuth(made) };
    },
  });
}

/** The project that the webhook falls under. Throws ApiError 404 when app or project is not the company's. */
async function projectOf(
  db: mongo.Db,
  companyId: string,
  { appId, projectId = '' }: Pick<CreateWebhookBody, 'appId' | 'projectId'>,
): Promise<string> {
  if (appId !== undefined) {
    const app = await documentsOf(db, 'apps', companyId).findOne({ _id: appId });
    if (!app) throw notFound('app');
    return app.projectId;
  }
  const project = await documentsOf(db, 'projects', companyId).findOne({ _id: projectId });
  if (!project) throw notFound('project');
  return project._id;
}

function newWebhook(
  { newId, nowMs }: WebhookRouteDeps,
  companyId: string,
  projectId: string,
  body: CreateWebhookBody,
): Webhook {
  const secret = newSecret();
  const createdAtMs = nowMs();
  return {
    id: newId('wh'),
    companyId,
    projectId,
    appId: body.appId ?? null,
    environmentId: body.environmentId ?? null,
    name: body.name ?? new URL(body.url).host.slice(0, 100),
    url: body.url,
    secret,
    previousSecret: null,
    customHeaders: body.customHeaders ?? [],
    authMethod: authMethodOf(body, undefined, secret),
    eventTypes: body.eventTypes ?? [],
    disabled: body.disabled ?? false,
    rateLimitPerSecond: body.rateLimitPerSecond ?? null,
    createdAtMs,
    updatedAtMs: createdAtMs,
  };
}

function listWebhooks({ db, webhooks, logger }: WebhookRouteDeps): Route {
  return route({
    method: 'get',
    path: '/webhooks',
    tag,
    summary: 'List the webhooks, oldest first',
    description:
      'One whose stored secrets cannot be read is left out, so a page may hold fewer than `limit`.',
    query: listQuery,
    answer: { status: 200, message: 'Webhooks found', data: z.array(webhookAnswer) },
    errors: ['not_found'],
    async handle({ caller: { companyId }, query }) {
      if (query.appId !== undefined) await projectOf(db, companyId, query);
      const page = await webhooks.list(companyId, query);
      const opened = page.filter((found) => isOpened(found, logger));
      return { data: opened.map(describeWebhook) };
    },
  });
}

/** Logs those that do not open, as the dispatcher does. */
function isOpened(found: FoundWebhook, logger: WebhookRouteDeps['logger']): found is Webhook {
  if (!('problem' in found)) return true;
  const { keyId, message: reason } = found.problem;
  logger.error({ webhookId: found.id, keyId, reason }, 'webhook cannot be opened');
  return false;
}

function getWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'get',
    path,
    tag,
    summary: 'Get a webhook',
    answer: { status: 200, message: 'Webhook found', data: webhookWithAuth },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      const found = await deps.webhooks.findOne(companyId, webhookId);
      if (!found) throw notFound('webhook');
      return { data: describeWebhookWithAuth(found) };
    },
  });
}

function updateWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'put',
    path,
    tag,
    summary: 'Change a webhook',
    description:
      'Fields that are left out stay as they are. Credentials must be those of the method that the webhook has or is given; a new method needs all of its own.',
    body: updateWebhookBody(deps.policy),
    isBodyOptional: true,
    answer: { status: 200, message: 'Webhook updated', data: webhookAnswer },
    errors: ['not_found'],
    async problemsOf({ caller: { companyId }, params: { webhookId = '' }, fields }) {
      const seen = await deps.webhooks.findOne(companyId, webhookId);
      return seen ? updateProblems(fields, seen, deps.policy) : [];
    },
    async handle({ caller: { companyId }, params: { webhookId = '' }, body: { value } }) {
      const decide = (seen: Webhook) => changesOf(seen, value);
      const changed = await deps.changeWebhook({ companyId, webhookId }, decide);
      return { data: describeWebhook(changed) };
    },
  });
}

function deleteWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'delete',
    path,
    tag,
    summary: 'Delete a webhook',
    description: 'Cancels its pending deliveries. What was sent stays readable.',
    answer: { status: 200, message: 'Webhook deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId: id = '' } }) {
      const found = await documentsOf(deps.db, 'webhooks', companyId).findOne({ _id: id });
      if (!(await deps.remove({ companyId, kind: 'webhook', id }))) throw notFound('webhook');
      // The next message to its app goes to the others only.
      if (found?.appId) await deps.invalidate({ companyId, id: found.appId });
      return {};
    },
  });
}
