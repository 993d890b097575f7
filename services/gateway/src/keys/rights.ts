import { allows, type Capability, type Scope } from '@posthorn/domain/access.ts';
import { includesRole, type Role } from '@posthorn/domain/people.ts';
import type { KeyPerson } from '@posthorn/platform/mongo/companies/companies.ts';
import type { DeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { FilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { readDelivery } from '../history/deliveries.ts';
import { ApiError, insufficientScope, notFound, nullIf404 } from '../api-error.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { Apps } from '../projects/apps.ts';

/** Who makes a request: what its API key stands for. Every query to the stores names its company. */
export interface Caller {
  companyId: string;
  keyId: string;
  scopes: readonly Scope[];
  /** The only app that the key may be used for; null for the whole company. */
  appId: string | null;
  /** The session of a visitor of the portal. `keyId` is the key that made the link. */
  portal?: PortalSession;
  /** The person whose session it is. `keyId` is the key of the session. */
  person?: KeyPerson;
}

interface PortalSession {
  linkId: string;
  capabilities: readonly Capability[];
}

/** The requirement of a route. */
export interface Needed {
  /** Absent: every key may use the route. */
  scope?: Scope;
  /** One of them is enough. Absent: the route does not exist for visitors of the portal. */
  portal?: Capability | readonly Capability[];
  /** The role of a person that is enough where the scope is not. */
  people?: Role;
}

/**
 * Throws ApiError 403 when the caller may not use the route (docs/contract.md C14.4), and 404 when it does not exist
 * for visitors of the portal (C20.3).
 */
export function assertAllowed(
  { scope, portal: needed, people }: Needed,
  { scopes, portal, person }: Pick<Caller, 'scopes' | 'portal' | 'person'>,
): void {
  if (portal) {
    if (!needed) throw new ApiError('route_not_found', 'The portal has no such address.');
    if ([needed].flat().some((each) => portal.capabilities.includes(each))) return;
    throw insufficientScope('What the link to the portal allows does not include this.');
  }
  if (scope !== undefined && !allows(scopes, scope)) {
    if (person && people && includesRole(person.role, people)) return;
    if (person) throw insufficientScope(`Your role ${person.role} does not include this.`);
    throw insufficientScope(`This API key does not have the scope ${scope}.`);
  }
}

/** Whether responses show the caller the secrets of webhooks (docs/contract.md C14.5, C20.3). */
export function seesSecrets(
  { scopes, portal }: Pick<Caller, 'scopes' | 'portal'>,
  scope: Scope = 'webhooks:write',
): boolean {
  return portal ? portal.capabilities.includes('secrets') : allows(scopes, scope);
}

/** The objects that a request names, in its path, its query and its body. */
export interface NamedIds {
  projectId?: string | undefined;
  appId?: string | undefined;
  webhookId?: string | undefined;
  messageId?: string | undefined;
  deliveryId?: string | undefined;
  resendId?: string | undefined;
  cancellationId?: string | undefined;
  keyId?: string | undefined;
}

interface ConfinementDeps {
  apps: Pick<Apps, 'get'>;
  webhooks: Pick<WebhookStore, 'appOf' | 'findOne' | 'cancelBeforeOf'>;
  messages: Pick<MessageQueries, 'outlinesOf' | 'findOne' | 'outlinesAt'>;
  deliveries: Pick<DeliveryQueries, 'findMany'>;
  resends: Pick<ResendStore, 'findShown'>;
  cancellations: Pick<FilterCancellations, 'findOne'>;
  apiKeys: { appOf: (companyId: string, keyId: string) => Promise<string | null> };
}

/** The company and the app of a key that may be used for that app only. */
interface AppOwner {
  companyId: string;
  appId: string;
}

type IsWithin = (
  deps: ConfinementDeps & { nextSlice: NextSlice },
  owner: AppOwner,
  id: string,
) => Promise<boolean>;

const CHECKS: Record<keyof NamedIds, IsWithin> = {
  projectId: isProjectOf,
  appId: (_deps, { appId }, id) => Promise.resolve(id === appId),
  webhookId: isWebhookOf,
  messageId: isMessageOf,
  deliveryId: isDeliveryOf,
  resendId: isResendOf,
  cancellationId: isCancellationOf,
  keyId: async ({ apiKeys }, { companyId, appId }, id) =>
    (await apiKeys.appOf(companyId, id)) === appId,
};

/**
 * Throws ApiError 404, as for an unknown id, when something that the request names is not in the app
 * (docs/contract.md C14.6).
 */
export async function confineToApp(
  deps: ConfinementDeps,
  owner: AppOwner,
  ids: NamedIds,
  nextSlice: NextSlice,
): Promise<void> {
  for (const [name, isWithin] of Object.entries(CHECKS) as [keyof NamedIds, IsWithin][]) {
    const id = ids[name];
    if (id === undefined || (await isWithin({ ...deps, nextSlice }, owner, id))) continue;
    throw notFound(LABELS[name]);
  }
}

/** As the routes name them when they do not exist. */
const LABELS: Record<keyof NamedIds, string> = {
  projectId: 'project',
  appId: 'app',
  webhookId: 'webhook',
  messageId: 'message',
  deliveryId: 'delivery',
  resendId: 'resend',
  cancellationId: 'cancellation',
  keyId: 'API key',
};

async function isProjectOf(
  { apps }: ConfinementDeps,
  { companyId, appId }: AppOwner,
  id: string,
): Promise<boolean> {
  const app = await apps.get(companyId, appId).catch(nullIf404);
  return app?.projectId === id;
}

async function isWebhookOf(
  { webhooks }: ConfinementDeps,
  { companyId, appId }: AppOwner,
  id: string,
): Promise<boolean> {
  return (await webhooks.appOf(companyId, id)) === appId;
}

/** A message to a webhook names no app. */
async function isMessageOf(deps: ConfinementDeps, owner: AppOwner, id: string): Promise<boolean> {
  const [found] = await deps.messages.outlinesOf(owner.companyId, [id], 1);
  if (!found) return false;
  if (found.appId !== null) return found.appId === owner.appId;
  const [webhookId] = found.targets;
  return webhookId !== undefined && isWebhookOf(deps, owner, webhookId);
}

async function isDeliveryOf(
  deps: ConfinementDeps & { nextSlice: NextSlice },
  owner: AppOwner,
  id: string,
): Promise<boolean> {
  const found = await readDelivery(deps, owner.companyId, id);
  if (!found) return false;
  const { appId, webhookId } = found.source;
  return appId === null ? isWebhookOf(deps, owner, webhookId) : appId === owner.appId;
}

async function isResendOf(deps: ConfinementDeps, owner: AppOwner, id: string): Promise<boolean> {
  const found = await deps.resends.findShown(owner.companyId, id);
  if (!found) return false;
  if (found.webhookId !== null) return isWebhookOf(deps, owner, found.webhookId);
  return found.appId === owner.appId;
}

async function isCancellationOf(
  deps: ConfinementDeps,
  owner: AppOwner,
  id: string,
): Promise<boolean> {
  const found = await deps.cancellations.findOne(owner.companyId, id);
  if (!found) return false;
  const { webhookId, appId } = found.filter;
  return webhookId === undefined ? appId === owner.appId : isWebhookOf(deps, owner, webhookId);
}
