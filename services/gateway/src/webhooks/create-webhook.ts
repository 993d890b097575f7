import type { IdPrefix } from '@posthorn/domain/ids/ids.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { EndpointTls, Header, Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { Quotas } from '../limits/quotas.ts';
import type { Apps } from '../projects/apps.ts';
import type { Projects } from '../projects/projects.ts';
import { authMethodOf, type AuthFields } from './auth-method.ts';
import { newSecret } from './new-secret.ts';

export interface CreateWebhookDeps {
  projects: Pick<Projects, 'get'>;
  apps: Pick<Apps, 'get'>;
  webhooks: Pick<WebhookStore, 'insert' | 'deleteOne' | 'countOf'>;
  quotas: Quotas;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  invalidate: Invalidate;
}

/** A request whose fields were checked: either `appId`, or `projectId` with `environmentId`. */
export interface NewWebhook extends AuthFields {
  appId?: string | undefined;
  projectId?: string | undefined;
  environmentId?: string | undefined;
  url: string;
  name?: string | undefined;
  customHeaders?: Header[] | undefined;
  tls?: EndpointTls | null | undefined;
  eventTypes?: string[] | undefined;
  disabled?: boolean | undefined;
  rateLimitPerSecond?: number | null | undefined;
}

/** Throws ApiError 404 for an unknown app or project, 409 when it has as many as it may. */
export type CreateWebhook = (companyId: string, fields: NewWebhook) => Promise<Webhook>;

const MAX_NAME_CHARS = 100;

export function createCreateWebhook(deps: CreateWebhookDeps): CreateWebhook {
  const { webhooks, quotas, invalidate } = deps;
  return async (companyId, fields) => {
    const projectId = await projectIdOf(deps, companyId, fields);
    const webhook = newWebhook(deps, companyId, projectId, fields);
    const { appId } = webhook;
    const owner = { appId, projectId };
    await quotas.createWithin({
      setting: appId === null ? 'QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT' : 'QUOTA_WEBHOOKS_PER_APP',
      companyId,
      ownerId: appId ?? projectId,
      count: (upTo) => webhooks.countOf(companyId, owner, upTo),
      create: () => insert(deps, webhook, fields),
    });
    await invalidate({ companyId, id: appId ?? webhook.id });
    return webhook;
  };
}

async function insert(
  deps: CreateWebhookDeps,
  webhook: Webhook,
  fields: NewWebhook,
): Promise<void> {
  const { companyId, id } = webhook;
  await deps.webhooks.insert(webhook);
  try {
    await projectIdOf(deps, companyId, fields);
  } catch (error) {
    // The app or project was deleted in the meantime. No webhook may outlive its owner.
    await deps.webhooks.deleteOne(companyId, id);
    throw error;
  }
}

async function projectIdOf(
  { projects, apps }: CreateWebhookDeps,
  companyId: string,
  { appId, projectId }: NewWebhook,
): Promise<string> {
  if (appId !== undefined) return (await apps.get(companyId, appId)).projectId;
  if (projectId === undefined) {
    throw new ImpossibleError('a checked request has an appId or a projectId');
  }
  return (await projects.get(companyId, projectId))._id;
}

function newWebhook(
  { newId, nowMs }: CreateWebhookDeps,
  companyId: string,
  projectId: string,
  fields: NewWebhook,
): Webhook {
  const secret = newSecret();
  const createdAtMs = nowMs();
  return {
    id: newId('wh'),
    companyId,
    projectId,
    appId: fields.appId ?? null,
    environmentId: fields.environmentId ?? null,
    name: fields.name ?? new URL(fields.url).host.slice(0, MAX_NAME_CHARS),
    url: fields.url,
    secret,
    previousSecret: null,
    customHeaders: fields.customHeaders ?? [],
    authMethod: authMethodOf(fields, undefined, secret),
    tls: fields.tls ?? null,
    eventTypes: fields.eventTypes ?? [],
    disabled: fields.disabled ?? false,
    rateLimitPerSecond: fields.rateLimitPerSecond ?? null,
    createdAtMs,
    updatedAtMs: createdAtMs,
  };
}
