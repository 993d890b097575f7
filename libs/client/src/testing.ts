import type {
  CreatedMessage,
  DeliveryStatus,
  ErrorCode,
  Message,
  MessageResult,
} from './schema.ts';
import {
  attemptOf,
  checkFields,
  checkMessage,
  created,
  type Fields,
  isNamed,
  JSON_HEADERS,
  type Kind,
  KINDS,
  listed,
  listedMessage,
  matches,
  noRoute,
  notFound,
  ownerKind,
  receives,
  Refusal,
  secretsOf,
  shown,
  type Stored,
  withoutNull,
} from './testing-objects.ts';

// An API in memory, for tests of code that uses the client. It keeps to the rules of docs/contract.md that it names.

/** A request as the code under test made it. */
export interface RecordedRequest {
  method: string;
  /** Below /api/v1, without its query. */
  path: string;
  query: Readonly<Record<string, string>>;
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>;
  /** Null without one. */
  body: Readonly<Record<string, unknown>> | null;
  /** The body byte for byte. */
  text: string;
}

interface Answer {
  status: number;
  data?: unknown;
  nextCursor?: string | null;
  headers?: Record<string, string>;
}

const MAX_ATTEMPTS = 7;
const LIST_LIMIT = 100;

/**
 * Answers the usual calls as the API does: it creates, gets, lists, changes and deletes projects, apps and webhooks, and
 * sends, gets and lists messages. It makes no delivery, and checks only whether fields are known and those required are
 * there. Any other call is a 404 `route_not_found`.
 */
export class TestApi {
  /** Every request since the start, oldest first. */
  readonly requests: RecordedRequest[] = [];
  /** The status of a message with webhooks when it is read. `delivered` unless a test sets another. */
  outcome: DeliveryStatus = 'delivered';
  /** The options with which a client, `new Posthorn(api.options)`, calls this API instead of one on the network. */
  readonly options = {
    apiKey: 'phk_test',
    baseUrl: 'https://posthorn.test',
    fetch: (url: string, init: RequestInit): Promise<Response> => this.#fetch(url, init),
  };
  readonly #failures: Refusal[] = [];
  readonly #objects = new Map<string, Stored>();
  readonly #messages = new Map<string, Message>();
  /** Idempotency key → the body that came with it, and its result. */
  readonly #results = new Map<string, { text: string; result: unknown }>();
  #ids = 0;

  /** Makes the next request fail, or after several calls the next ones in their order. A retry follows at once. */
  failNext(status: number, code: ErrorCode, message = `The test wants ${code}`): void {
    this.#failures.push(new Refusal(status, code, message));
  }

  #fetch(url: string, { method = 'GET', headers, body, signal }: RequestInit): Promise<Response> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const { pathname, searchParams } = new URL(url);
    const text = typeof body === 'string' ? body : '';
    const request = {
      method,
      path: pathname.replace(/^\/api\/v1/, ''),
      query: Object.fromEntries(searchParams),
      headers: Object.fromEntries(new Headers(headers)),
      body: text === '' ? null : (JSON.parse(text) as Fields),
      text,
    };
    this.requests.push(request);
    return Promise.resolve(
      responseOf(`test-request-${this.requests.length}`, () => {
        const failure = this.#failures.shift();
        if (failure) throw failure;
        return this.#answer(request);
      }),
    );
  }

  #answer(request: RecordedRequest): Answer {
    const [, first = '', id, ...others] = request.path.split('/').map(decodeURIComponent);
    if (others.length === 0 && first in KINDS) {
      const kind = first as Kind;
      return id === undefined ? this.#answerAll(kind, request) : this.#answerOne(kind, id, request);
    }
    switch (
      `${request.method} ${id === undefined || id === 'batch' ? request.path : `/${first}/ID`}`
    ) {
      case 'POST /webhook-messages':
        return this.#answerOnce(request, () => ({
          status: 202,
          data: this.#send(checkMessage(request.body ?? {})),
        }));
      case 'POST /webhook-messages/batch':
        return this.#sendBatch(request);
      case 'GET /webhook-messages':
        return this.#listMessages(request.query);
      case 'GET /webhook-messages/ID':
        return {
          status: 200,
          data: this.#read(this.#messages.get(id ?? '') ?? notFound('message')),
        };
      default:
        throw noRoute(request.method, request.path);
    }
  }

  #answerAll(kind: Kind, request: RecordedRequest): Answer {
    if (request.method === 'POST') {
      return this.#answerOnce(request, () => ({
        status: 201,
        data: created(this.#create(kind, request.body ?? {})),
      }));
    }
    const { owner } = KINDS[kind];
    const named = owner === null ? undefined : request.query[owner];
    const ownerId = named === undefined ? undefined : this.#find(ownerKind(kind), named).id;
    const found = this.#all(kind).filter((each) => ownerId === undefined || each.owner === ownerId);
    const skip = Number(request.query.skip ?? 0);
    const limit = Number(request.query.limit ?? LIST_LIMIT);
    return { status: 200, data: found.slice(skip, skip + limit).map(listed) };
  }

  #answerOne(kind: Kind, id: string, { method, query, body }: RecordedRequest): Answer {
    if (method === 'PUT' && query.upsert === 'true' && !this.#has(kind, id)) {
      const fields = { ...body, uid: id.replace(/^uid:/, '') };
      return { status: 201, data: created(this.#create(kind, fields)) };
    }
    const object = this.#find(kind, id);
    switch (method) {
      case 'PUT':
        return { status: 200, data: listed(this.#update(object, body ?? {})) };
      case 'DELETE':
        this.#delete(object);
        return { status: 200 };
      case 'GET':
        return { status: 200, data: shown(object) };
      default:
        throw noRoute(method, `/${kind}/${id}`);
    }
  }

  /** A repeat with the same key and body gets the first answer again (docs/contract.md C8). */
  #answerOnce({ path, text, headers }: RecordedRequest, make: () => Answer): Answer {
    const key = headers['idempotency-key'];
    const { result, isReplayed } = this.#once(
      key === undefined ? null : `${path} ${key}`,
      text,
      make,
    );
    return isReplayed ? { ...result, headers: { 'idempotency-replayed': 'true' } } : result;
  }

  #once<T>(key: string | null, text: string, make: () => T): { result: T; isReplayed: boolean } {
    const first = key === null ? undefined : this.#results.get(key);
    if (first && first.text !== text) {
      throw new Refusal(422, 'idempotency_key_reused', 'The key came with another body');
    }
    const result = first ? (first.result as T) : make();
    if (key !== null) this.#results.set(key, { text, result });
    return { result, isReplayed: first !== undefined };
  }

  #create(kind: Kind, given: Fields): Stored {
    const { owner, rules, prefix } = KINDS[kind];
    const fields = withoutNull(given);
    checkFields(rules, fields, true);
    this.#checkUid(kind, fields.uid, null);
    const ownerName = owner === null ? undefined : (fields[owner] as string | undefined);
    const now = new Date().toISOString();
    const object: Stored = {
      kind,
      id: this.#newId(prefix),
      owner: ownerName === undefined ? null : this.#find(ownerKind(kind), ownerName).id,
      fields: kind === 'webhooks' ? { ...secretsOf(fields), ...fields } : fields,
      createdAt: now,
      updatedAt: now,
    };
    this.#objects.set(object.id, object);
    return object;
  }

  #update(object: Stored, changes: Fields): Stored {
    const fields = withoutNull({ ...object.fields, ...changes });
    checkFields(KINDS[object.kind].rules, changes, false);
    this.#checkUid(object.kind, changes.uid, object);
    // An empty change changes nothing (docs/contract.md C1.8).
    if (Object.keys(changes).length > 0) {
      Object.assign(object, { fields, updatedAt: new Date().toISOString() });
    }
    return object;
  }

  #checkUid(kind: Kind, uid: unknown, self: Stored | null): void {
    const taken = this.#all(kind).find(
      ({ fields }) => typeof uid === 'string' && fields.uid === uid,
    );
    if (taken && taken !== self)
      throw new Refusal(409, 'uid_taken', `Another has the uid ${String(uid)}`);
  }

  #delete(object: Stored): void {
    this.#objects.delete(object.id);
    for (const each of this.#objects.values()) if (each.owner === object.id) this.#delete(each);
  }

  #all = (kind: Kind): Stored[] => [...this.#objects.values()].filter((each) => each.kind === kind);

  #has = (kind: Kind, name: string): boolean => this.#all(kind).some((each) => isNamed(each, name));

  #find(kind: Kind, name: string): Stored {
    return this.#all(kind).find((each) => isNamed(each, name)) ?? notFound(kind.slice(0, -1));
  }

  #send(given: Fields): CreatedMessage {
    const { payload, ...fields } = withoutNull(given);
    const { appId, webhookId } = fields as { appId?: string; webhookId?: string };
    const eventType = (fields.eventType as string | undefined) ?? null;
    const target = webhookId === undefined ? null : this.#find('webhooks', webhookId);
    const app = appId === undefined ? (target?.owner ?? '') : this.#find('apps', appId).id;
    const ofApp = this.#all('webhooks').filter(({ owner }) => owner === app);
    const targets = target ? [target] : ofApp.filter((each) => receives(each, eventType));
    const now = new Date().toISOString();
    const hasTargets = targets.length > 0;
    const created: CreatedMessage = {
      id: this.#newId('msg'),
      delivered: false,
      payload: JSON.stringify(payload),
      signature: hasTargets ? '0'.repeat(64) : null,
      headers: hasTargets ? JSON_HEADERS : [],
      tags: (fields.tags as string[] | undefined) ?? [],
      externalId: (fields.externalId as string | undefined) ?? null,
      orderingKey: (fields.orderingKey as string | undefined) ?? null,
      deliverAt: (fields.deliverAt as string | undefined) ?? null,
      expiresAt: (fields.expiresAt as string | undefined) ?? null,
      retentionDays: (fields.retentionDays as number | undefined) ?? null,
      noTargetReason: hasTargets ? null : ofApp.length > 0 ? 'event_type' : 'no_webhook',
      createdAt: now,
      updatedAt: now,
      deliveryAttempt: hasTargets ? attemptOf(this.#newId('att'), now) : null,
      deliveries: targets.map(({ id }) => ({
        id: this.#newId('dlv'),
        webhookId: id,
        status: 'pending' as const,
        attemptCount: 0,
      })),
    };
    const status = hasTargets ? 'pending' : 'no_target';
    this.#messages.set(created.id, { ...created, appId: app, eventType, status });
    return created;
  }

  /** Each message is sent or fails by itself (docs/contract.md C22). */
  #sendBatch({ body, headers }: RecordedRequest): Answer {
    const key = headers['idempotency-key'];
    const messages = ((body?.messages ?? []) as Fields[]).map(
      ({ idempotencyKey, ...message }, index) => ({
        own: (idempotencyKey as string | undefined) ?? (key && `${key}#${index}`),
        message: checkMessage(message, `messages.${index}.`),
      }),
    );
    const results = messages.map(({ own, message }, index): MessageResult => {
      try {
        return this.#sendOfBatch(message, index, own);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { index, status: 'failed', code: error.code, message: error.message };
      }
    });
    const count = (wanted: string): number =>
      results.filter(({ status }) => status === wanted).length;
    const [accepted, replayed, failed] = ['accepted', 'replayed', 'failed'].map(count);
    return { status: 202, data: { accepted, replayed, failed, results } };
  }

  #sendOfBatch(message: Fields, index: number, key: string | undefined): MessageResult {
    const path = key === undefined ? null : `batch ${key}`;
    const send = (): CreatedMessage => this.#send(message);
    const { result, isReplayed } = this.#once(path, JSON.stringify(message), send);
    const status = isReplayed ? 'replayed' : 'accepted';
    return { index, status, messageId: result.id, deliveries: result.deliveries.length };
  }

  #listMessages({ cursor, limit = '50', ...filter }: RecordedRequest['query']): Answer {
    const newestFirst = [...this.#messages.values()].toReversed();
    const found = newestFirst
      .map((each) => this.#read(each))
      .filter((message) => matches(message, filter));
    const from = Number(cursor ?? 0);
    const to = from + Number(limit);
    const data = found.slice(from, to).map(listedMessage);
    return { status: 200, data, nextCursor: to < found.length ? String(to) : null };
  }

  #read(message: Message): Message {
    const { outcome } = this;
    if (message.status === 'no_target') return message;
    const isMade = outcome === 'delivered' || outcome === 'exhausted';
    const attemptCount = outcome === 'exhausted' ? MAX_ATTEMPTS : isMade ? 1 : 0;
    const statusCode = outcome === 'delivered' ? 200 : 500;
    return {
      ...message,
      status: outcome,
      delivered: outcome === 'delivered',
      deliveries: message.deliveries.map((each) => ({ ...each, status: outcome, attemptCount })),
      deliveryAttempt: message.deliveryAttempt && {
        ...message.deliveryAttempt,
        ...(isMade && { processed: true, statusCode, response: '' }),
      },
    };
  }

  #newId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}_${String(this.#ids).padStart(26, '0')}`;
  }
}

function responseOf(requestId: string, answer: () => Answer): Response {
  try {
    const { status, headers = {}, ...body } = answer();
    return Response.json(
      { success: true, message: 'From the test API', ...body },
      { status, headers: { ...headers, 'x-request-id': requestId } },
    );
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { status, code, message, errors } = error;
    return Response.json(
      { success: false, message, code, requestId, ...(errors && { errors }) },
      // A repeat follows at once.
      { status, headers: { 'retry-after': '0', 'x-request-id': requestId } },
    );
  }
}
