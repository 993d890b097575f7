import { APP_FIELDS } from '@posthorn/domain/app-fields.ts';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { type AuthFields, authMethodOf } from '@posthorn/domain/auth-methods.ts';
import { type GivenFields, newValues, withoutSecrets } from '@posthorn/domain/webhook-fields.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import {
  changedFields,
  createShape,
  newFields,
  responseFields,
} from '@posthorn/domain/object-fields.ts';
import { EVENT_TYPE_FIELDS } from '@posthorn/domain/event-type-fields.ts';
import { PROJECT_FIELDS } from '@posthorn/domain/project-fields.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ApiError } from '../../../services/gateway/src/api-error.ts';
import { ERROR_CODES } from '../../../services/gateway/src/error-codes.ts';
import {
  changesOf,
  createWebhookBody,
  updateWebhookBody,
} from '../../../services/gateway/src/routes/webhook-body.ts';
import {
  describeWebhook,
  describeWebhookWithAuth,
} from '../../../services/gateway/src/routes/webhook-responses.ts';

const TABLES = { apps: APP_FIELDS, projects: PROJECT_FIELDS };

type Fields = Record<string, unknown>;
type Kind = 'projects' | 'apps' | 'webhooks';

interface Answer {
  status: number;
  data?: unknown;
  code?: string;
  errors?: readonly { path: string; message: string }[];
  headers?: Record<string, string>;
}

/** What a test does to a request. `answer` carries it out. */
export type Interference = (
  request: { method: string; path: string },
  answer: () => Answer,
) => Answer;

const PREFIXES = { projects: 'proj', apps: 'app', webhooks: 'wh' } as const;
const REFERENCES = { projectId: 'projects', appId: 'apps' } as const;
const TIME = '2026-01-31T09:30:00.000Z';

const eventTypeBody = z.object(createShape(EVENT_TYPE_FIELDS));
const createBody = createWebhookBody(STRICT_EGRESS);
const updateBody = updateWebhookBody(STRICT_EGRESS);

/**
 * Projects, event types, apps and webhooks of one company in memory, behind `fetch`. Webhooks are checked and changed by the functions
 * of the gateway; keys, quotas and messages are not modelled.
 */
export class ModelApi {
  readonly requests: string[] = [];
  interfere: Interference = (_request, answer) => answer();
  /** False for a key with the scope `read` only. */
  seesSecrets = true;
  readonly #objects = {
    projects: new Map<string, Fields>(),
    apps: new Map<string, Fields>(),
    webhooks: new Map<string, Webhook>(),
  };
  /** By project, then by name. */
  readonly #eventTypes = new Map<string, Map<string, Fields>>();
  #count = 0;

  readonly fetch = async (address: string, init: RequestInit): Promise<Response> => {
    init.signal?.throwIfAborted();
    const { pathname, searchParams } = new URL(address);
    const path = pathname.replace('/api/v1', '');
    const method = init.method ?? 'GET';
    this.requests.push(`${method} ${path}`);
    const body = typeof init.body === 'string' ? (JSON.parse(init.body) as Fields) : {};
    const { status, headers, ...rest } = this.interfere({ method, path }, () =>
      this.#handle(method, path, searchParams, body),
    );
    return Promise.resolve(
      Response.json(
        { success: status < 400, message: rest.code ?? 'ok', ...rest },
        { status, ...(headers && { headers }) },
      ),
    );
  };

  /** Everything, for comparisons: without times. */
  snapshot(): unknown {
    const { projects, apps, webhooks } = this.#objects;
    return structuredClone([
      [...projects.values()],
      [...apps.values()],
      [...webhooks.values()],
    ]).map((list) => list.map((each) => ({ ...each, updatedAtMs: 0 })));
  }

  count(kind: Kind): number {
    return this.#objects[kind].size;
  }

  #handle(method: string, path: string, query: URLSearchParams, body: Fields): Answer {
    try {
      const [, name = '', id, action, inner] = path.split('/');
      if (name === 'find-apps') return this.#find('apps', query);
      if (name === 'find-webhooks') return this.#find('webhooks', query);
      if (action === 'event-types')
        return this.#handleEventType(method, this.#idOf('projects', id ?? ''), inner, body);
      const kind = name as Kind;
      if (id === undefined) return this.#list(kind, query);
      if (action === 'rotate-secret')
        return this.#rotate(this.#idOf(kind, id), String(body.secret));
      if (method === 'PUT' && query.get('upsert') === 'true') return this.#upsert(kind, id, body);
      const found = this.#idOf(kind, id);
      if (method === 'PUT') return this.#update(kind, found, body);
      if (method === 'DELETE') return this.#delete(kind, found);
      return { status: 200, data: this.#shown(kind, found, query) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { status: ERROR_CODES[error.code].status, code: error.code };
    }
  }

  /** Throws when nothing has the id, or the uid behind `uid:`. */
  #idOf(kind: Kind, reference: string): string {
    const id = this.#resolve(kind, reference);
    if (!this.#objects[kind].has(id)) throw new ApiError('not_found', reference);
    return id;
  }

  #resolve(kind: Kind, reference: string): string {
    if (!reference.startsWith('uid:')) return reference;
    const objects = [...this.#objects[kind]] as [string, { uid?: unknown }][];
    return objects.find(([, { uid }]) => `uid:${String(uid)}` === reference)?.[0] ?? reference;
  }

  /** Updates are upserts. */
  #handleEventType(
    method: string,
    projectId: string,
    path: string | undefined,
    body: Fields,
  ): Answer {
    const own = this.#eventTypes.get(projectId) ?? new Map<string, Fields>();
    this.#eventTypes.set(projectId, own);
    if (path === undefined) return { status: 200, data: [...own.values()] };
    const name = decodeURIComponent(path);
    const before = own.get(name);
    if (method === 'PUT') {
      const given = before ? { ...before, ...body } : body;
      const known = Object.entries(given).filter(([, value]) => value !== null);
      const parsed = eventTypeBody.safeParse({ ...Object.fromEntries(known), name });
      if (!parsed.success) throw new ApiError('invalid_request', parsed.error.message);
      const fields = newFields(EVENT_TYPE_FIELDS, parsed.data);
      own.set(name, responseFields(EVENT_TYPE_FIELDS, fields));
    } else if (!before) throw new ApiError('not_found', name);
    return { status: 200, data: own.get(name) };
  }

  #shown(kind: Kind, id: string, query = new URLSearchParams()): object {
    if (kind === 'webhooks') {
      const webhook = this.#webhook(id);
      const isShown = this.seesSecrets && query.get('secrets') !== 'false';
      return describeWebhookWithAuth(isShown ? webhook : withoutSecrets(webhook));
    }
    const fields = { ...this.#objects[kind].get(id), projectId: undefined } as Fields;
    const metadata = fields.metadata ?? {};
    const described = fields.description === null ? { ...fields, description: undefined } : fields;
    const { uid = null } = described;
    return { ...described, uid, metadata, createdAt: TIME, updatedAt: TIME };
  }

  #webhook(id: string): Webhook {
    const found = this.#objects.webhooks.get(id);
    if (!found) throw new ApiError('not_found', id);
    return found;
  }

  #list(kind: Kind, query: URLSearchParams): Answer {
    const projectId = query.get('projectId');
    const all = [...this.#objects[kind].keys()].filter(
      (id) => projectId === null || this.#objects.apps.get(id)?.projectId === projectId,
    );
    const skip = Number(query.get('skip') ?? 0);
    const page = all.slice(skip, skip + Number(query.get('limit')));
    const shown = page.map((id) =>
      kind === 'webhooks'
        ? describeWebhook(withoutSecrets(this.#webhook(id)))
        : this.#shown(kind, id),
    );
    return { status: 200, data: shown };
  }

  /** In one page. */
  #find(kind: 'apps' | 'webhooks', query: URLSearchParams): Answer {
    const wanted = query
      .get('ids')
      ?.split(',')
      .map((each) => this.#resolve(kind, each));
    const ids = [...this.#objects[kind].keys()].filter((id) => !wanted || wanted.includes(id));
    const found = ids.map((id) => {
      if (kind === 'apps')
        return { ...this.#objects.apps.get(id), uid: this.#objects.apps.get(id)?.uid ?? null };
      const { uid, appId, projectId, environmentId } = this.#webhook(id);
      const global =
        appId === null ? { projectId, environmentId } : { projectId: null, environmentId: null };
      return { id, uid, appId, ...global };
    });
    return { status: 200, data: kind === 'apps' ? found : found.toReversed() };
  }

  #upsert(kind: Kind, reference: string, body: Fields): Answer {
    const id = this.#resolve(kind, reference);
    const owned = this.#withOwners(body);
    if (kind === 'webhooks') owned.name ??= undefined;
    if (!this.#objects[kind].has(id))
      return this.#create(kind, { ...owned, uid: reference.slice(4) });
    const { projectId, appId, environmentId, environment, secret, name, ...changes } = owned;
    const own = this.#objects[kind].get(id) as Fields;
    const moved = Object.entries({ projectId, appId, environmentId, environment }).some(
      ([field, value]) => value !== undefined && value !== own[field],
    );
    if (moved) throw new ApiError('uid_taken', reference);
    if (secret !== undefined && secret !== own.secret)
      throw new ApiError('invalid_request', 'secret');
    return this.#update(kind, id, { ...changes, ...(name !== undefined && { name }) });
  }

  #withOwners(body: Fields): Fields {
    const owners = Object.entries(REFERENCES).flatMap(([field, kind]) => {
      const value = body[field];
      return typeof value === 'string' ? [[field, this.#idOf(kind, value)]] : [];
    });
    return { ...body, ...(Object.fromEntries(owners) as Fields) };
  }

  #create(kind: Kind, body: Fields): Answer {
    this.#count += 1;
    const id = `${PREFIXES[kind]}_${String(this.#count).padStart(6, '0')}`;
    if (kind === 'webhooks')
      this.#objects.webhooks.set(id, newWebhook(id, body, this.#projectOf(body)));
    else this.#objects[kind].set(id, { ...newFields(TABLES[kind], body as never), id });
    return { status: 201, data: this.#shown(kind, id) };
  }

  #projectOf({ appId, projectId }: Fields): string {
    return String(typeof appId === 'string' ? this.#objects.apps.get(appId)?.projectId : projectId);
  }

  #update(kind: Kind, id: string, body: Fields): Answer {
    if (kind === 'webhooks') {
      const webhook = this.#webhook(id);
      const parsed = updateBody.safeParse(body);
      if (!parsed.success) throw new ApiError('invalid_request', parsed.error.message);
      const changes = changesOf(webhook, parsed.data, { seesSecrets: this.seesSecrets });
      this.#objects.webhooks.set(id, { ...webhook, ...changes });
    } else {
      const own = this.#objects[kind].get(id);
      this.#objects[kind].set(id, { ...own, ...changedFields(TABLES[kind], body as never) });
    }
    return { status: 200, data: this.#shown(kind, id) };
  }

  /** As the gateway rotates: an `hmacSecret` that equals the secret follows it. */
  #rotate(id: string, secret: string): Answer {
    const webhook = this.#webhook(id);
    const { authMethod } = webhook;
    const follows = authMethod.method === 'hmac' && authMethod.hmacSecret === webhook.secret;
    const auth = follows ? { ...authMethod, hmacSecret: secret } : authMethod;
    this.#objects.webhooks.set(id, { ...webhook, secret, authMethod: auth });
    return { status: 200, data: this.#shown('webhooks', id) };
  }

  #delete(kind: Kind, id: string): Answer {
    const { projects, apps, webhooks } = this.#objects;
    this.#objects[kind].delete(id);
    for (const [appId, { projectId }] of apps)
      if (!projects.has(String(projectId))) apps.delete(appId);
    for (const [webhookId, { appId, projectId }] of webhooks) {
      const isOrphan = appId === null ? !projects.has(projectId) : !apps.has(appId);
      if (isOrphan) webhooks.delete(webhookId);
    }
    return { status: 200 };
  }
}

function newWebhook(id: string, body: Fields, projectId: string): Webhook {
  const parsed = createBody.safeParse(body);
  if (!parsed.success) throw new ApiError('invalid_request', parsed.error.message);
  const fields = parsed.data as GivenFields & AuthFields;
  const { secret = secretFromBytes(createHash('sha256').update(id).digest()) } = fields;
  return {
    ...newValues(fields),
    id,
    companyId: 'comp_1',
    projectId,
    secret,
    previousSecret: null,
    rotations: null,
    cancelBeforeMs: null,
    disabledReason: null,
    held: null,
    authMethod: authMethodOf(fields, undefined, secret),
    createdAtMs: 0,
    updatedAtMs: 0,
  };
}
