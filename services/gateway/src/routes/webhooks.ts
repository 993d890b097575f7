import { randomBytes } from 'node:crypto';
import { DEFAULT_HEADERS } from '@posthorn/domain/delivery-headers.ts';
import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { secretFromBytes } from '@posthorn/domain/signature.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { notFound } from '../http/api-error.ts';
import { bodyRoute, type Route } from '../http/route.ts';
import { authMethodOf, webhookBody, type WebhookBody } from './webhook-body.ts';

export interface WebhookRouteDeps {
  db: mongo.Db;
  webhooks: WebhookStore;
  policy: EgressPolicy;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  /** Tells every process, this one first, to forget what it remembers of a webhook or app. */
  invalidate: (invalidation: Invalidation) => Promise<void>;
}

const SECRET_BYTES = 32;

export function webhookRoutes(deps: WebhookRouteDeps): Route[] {
  const { webhooks, policy, invalidate } = deps;
  return [
    bodyRoute({
      method: 'post',
      path: '/webhooks',
      body: webhookBody(policy),
      async handle({ caller: { companyId }, body: { value } }) {
        const projectId = await projectOf(deps.db, companyId, value);
        const webhook = newWebhook(deps, companyId, projectId, value);
        await webhooks.insert(webhook);
        await invalidate({ companyId, id: webhook.appId ?? webhook._id });
        return { status: 201, message: 'Webhook created', data: describe(webhook) };
      },
    }),
    {
      method: 'delete',
      path: '/webhooks/:webhookId',
      async handle({ caller: { companyId }, params: { webhookId = '' } }) {
        const webhook = await webhooks.findOne(companyId, webhookId);
        if (!webhook || !(await webhooks.deleteOne(companyId, webhookId)))
          throw notFound('webhook');
        await invalidate({ companyId, id: webhookId });
        if (webhook.appId) await invalidate({ companyId, id: webhook.appId });
        return { status: 200, message: 'Webhook deleted' };
      },
    },
  ];
}

/** The project that the webhook falls under. Throws ApiError 404 when app or project is not the company's. */
async function projectOf(db: mongo.Db, companyId: string, body: WebhookBody): Promise<string> {
  if (body.appId !== undefined) {
    const app = await collection(db, 'apps').findOne({ _id: body.appId, companyId });
    if (!app) throw notFound('app');
    return app.projectId;
  }
  const _id = body.projectId ?? '';
  const project = await collection(db, 'projects').findOne({ _id, companyId });
  if (!project) throw notFound('project');
  return project._id;
}

function newWebhook(
  { newId, nowMs }: WebhookRouteDeps,
  companyId: string,
  projectId: string,
  body: WebhookBody,
): WebhookDocument {
  const secret = secretFromBytes(randomBytes(SECRET_BYTES));
  const now = new Date(nowMs());
  return {
    _id: newId('wh'),
    companyId,
    projectId,
    appId: body.appId ?? null,
    environmentId: body.environmentId ?? null,
    name: body.name ?? new URL(body.url).host.slice(0, 100),
    url: body.url,
    secret,
    customHeaders: body.customHeaders,
    authMethod: authMethodOf(body, secret),
    disabled: false,
    createdAt: now,
    updatedAt: now,
  };
}

function describe(webhook: WebhookDocument): object {
  const { _id, name, url, secret, customHeaders, authMethod, createdAt, updatedAt } = webhook;
  const headers = DEFAULT_HEADERS;
  return { id: _id, name, url, secret, customHeaders, headers, authMethod, createdAt, updatedAt };
}
