import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { z } from 'zod';
import { notFound } from '../../http/api-error.ts';
import type { Caller } from '../../http/request/route.ts';
import type { HasApp } from '../../projects/has-app.ts';

export interface OwnerDeps {
  webhooks: Pick<WebhookStore, 'has'>;
  hasApp: HasApp;
}

export interface AskedOwner {
  webhookId?: string | undefined;
  appId?: string | undefined;
}

/** A webhook is of one app already. */
export function refuseBoth({ webhookId, appId }: AskedOwner, context: z.RefinementCtx): void {
  if (webhookId === undefined || appId === undefined) return;
  context.addIssue({ code: 'custom', path: ['appId'], message: 'excludes webhookId' });
}

/**
 * Returns the id of the webhook, the app or the company whose attempts are asked for. Throws ApiError 404 for an
 * unknown one.
 */
export async function findOwner(
  { webhooks, hasApp }: OwnerDeps,
  { companyId, appId: onlyAppId }: Caller,
  { webhookId, appId = onlyAppId ?? undefined }: AskedOwner,
): Promise<string> {
  if (webhookId !== undefined) {
    if (!(await webhooks.has(companyId, webhookId))) throw notFound('webhook');
    return webhookId;
  }
  if (appId === undefined) return companyId;
  if (!(await hasApp(companyId, appId))) throw notFound('app');
  return appId;
}
