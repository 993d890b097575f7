import type { ApiClient } from './api-client.ts';
import { eventually } from '../time/eventually.ts';
import { dataOf } from './expect-answers.ts';

interface Pair {
  key: string;
  value: string;
}

export interface ShownProject {
  id: string;
  name: string;
  createdAt: string;
  updatedAt: string;
}

export type ShownApp = ShownProject;

export interface ShownWebhook extends ShownProject {
  url: string;
  secret: string;
  customHeaders: Pair[];
  disabled: boolean;
  authMethod?: Record<string, string>;
}

export interface ShownMessage {
  id: string;
  delivered: boolean;
  status?: string;
  payload: string;
  signature: string | null;
  headers: Pair[];
  createdAt: string;
  updatedAt: string;
  deliveryAttempt: { id: string; processed: boolean; resend: boolean; statusCode: number } | null;
  deliveries: { id: string; webhookId: string; status: string; attemptCount: number }[];
}

export interface ShownAttempt {
  id: string;
  number: number;
  resend: boolean;
  outcome: string;
  statusCode: number | null;
  response: string | null;
  responseHeaders: Pair[];
  headers: Pair[];
  createdAt: string;
  updatedAt: string;
}

export interface ShownDelivery {
  id: string;
  messageId: string;
  webhookId: string;
  status: string;
  reason: string | null;
  attemptCount: number;
  nextAttemptAt: string | null;
  attempts: ShownAttempt[];
  createdAt: string;
  updatedAt: string;
}

/** Creates resources as a client does and returns their `data`; fails when one is refused. */
export interface Resources {
  project: (fields?: object) => Promise<ShownProject>;
  /** Creates an app, in a new project unless `projectId` is given. */
  app: (fields?: object) => Promise<ShownApp>;
  /** Creates a webhook, of a new app unless an owner is given. */
  webhook: (fields: object) => Promise<ShownWebhook>;
  message: (fields: object) => Promise<ShownMessage>;
  delivery: (deliveryId: string) => Promise<ShownDelivery>;
  /** Waits until the delivery has this status. */
  deliveryOnce: (status: string, deliveryId: string) => Promise<ShownDelivery>;
}

export function createResources(api: ApiClient): Resources {
  const create = async <Shown>(path: string, fields: object, status = 201): Promise<Shown> =>
    dataOf<Shown>(await api.post(path, fields), status);

  const project: Resources['project'] = (fields) =>
    create('/projects', { name: 'Project', ...fields });

  const app: Resources['app'] = async (fields = {}) => {
    const projectId = 'projectId' in fields ? fields.projectId : (await project()).id;
    return create('/apps', { name: 'App', projectId, ...fields });
  };

  const delivery: Resources['delivery'] = async (deliveryId) =>
    dataOf(await api.get(`/api/v1/deliveries/${deliveryId}`));

  return {
    project,
    app,
    async webhook(fields) {
      const hasOwner = 'appId' in fields || 'projectId' in fields;
      const owner = hasOwner ? {} : { appId: (await app()).id };
      return create('/webhooks', { ...owner, ...fields });
    },
    message: (fields) => create('/webhook-messages', { payload: { n: 1 }, ...fields }, 202),
    delivery,
    deliveryOnce: (status, deliveryId) =>
      eventually(`delivery ${status}`, async () => {
        const shown = await delivery(deliveryId);
        return shown.status === status ? shown : null;
      }),
  };
}

/** Returns a webhook as lists, updates and rotations show it. */
export function withoutAuth(webhook: ShownWebhook): object {
  const alone = ['authMethod', 'waiting', 'blockedKeys'];
  return Object.fromEntries(Object.entries(webhook).filter(([key]) => !alone.includes(key)));
}
