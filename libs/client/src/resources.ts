import type { BodyOf, Operations, QueryOf } from './operations.ts';
import type { ApiPromise, List } from './results.ts';
import type {
  ApiKey,
  App,
  AppCounts,
  AuditEvent,
  BeginHold,
  Cancellation,
  CancelPending,
  CreateApiKey,
  CreateApp,
  CreatedApiKey,
  CreatedProject,
  CreateEventType,
  CreatePortalLink,
  CreateProject,
  CreateWebhook,
  Delivery,
  DeliveryFilter,
  DeliveryPlan,
  EndHold,
  ErasedResponses,
  EventType,
  FailureGroup,
  FoundApp,
  FoundWebhook,
  ImportedEventTypes,
  ImportEventTypes,
  ListedDelivery,
  ListedEventType,
  ListedPortalLink,
  OpenCircuit,
  OrderingKey,
  Overview,
  PendingCancelled,
  PortalLink,
  PortalSettings,
  Project,
  ReplayEstimate,
  ReplayMissing,
  Resend,
  ResendEstimate,
  ResendFailed,
  ResendFailedOfWebhook,
  RotateApiKey,
  RotateSecret,
  RotateSigningKey,
  SigningKey,
  SkipOrderingKey,
  SkippedOrderingKey,
  Stats,
  TestedFilter,
  TestFilter,
  TestWebhook,
  UpdatePortalSettings,
  Webhook,
  WebhookHealth,
  WebhookWithAuth,
} from './schema.ts';
import type { CreateOptions, RequestOptions } from './transport.ts';

/* Wherever an id of a project, app or webhook is given, `uid:` and its uid will do (docs/contract.md C1.12). */

export interface UpdateOptions extends RequestOptions {
  /**
   * With `true`, the id is `uid:` and a uid, and the body is that of a creation: what has the uid is updated, and created
   * when nothing has it.
   */
  upsert?: boolean | undefined;
}

class Resource {
  protected readonly api: Operations;

  constructor(api: Operations) {
    this.api = api;
  }
}

export class Projects extends Resource {
  create(project: CreateProject, options?: CreateOptions): ApiPromise<CreatedProject> {
    return this.api.create('/projects', { body: project, options });
  }

  /** Oldest first. */
  list(query?: QueryOf<'GET', '/projects'>, options?: RequestOptions): List<Project> {
    return this.api.bySkip('/projects', { query, options });
  }

  get(projectId: string, options?: RequestOptions): ApiPromise<Project> {
    return this.api.call('GET', '/projects/{projectId}', { id: projectId, options });
  }

  /** Fields that are left out keep their values, and null takes one away. */
  update(
    projectId: string,
    changes: BodyOf<'PUT', '/projects/{projectId}'>,
    { upsert, ...options }: UpdateOptions = {},
  ): ApiPromise<Project> {
    const call = { id: projectId, query: { upsert }, body: changes, options };
    return this.api.call('PUT', '/projects/{projectId}', call);
  }

  /** Deletes its apps and webhooks too, and cancels their pending deliveries. */
  delete(projectId: string, options?: RequestOptions): ApiPromise<undefined> {
    return this.api.call('DELETE', '/projects/{projectId}', { id: projectId, options });
  }
}

export class Apps extends Resource {
  create(app: CreateApp, options?: CreateOptions): ApiPromise<App> {
    return this.api.create('/apps', { body: app, options });
  }

  /** The apps of a project, oldest first. */
  list(query: QueryOf<'GET', '/apps'>, options?: RequestOptions): List<App> {
    return this.api.bySkip('/apps', { query, options });
  }

  get(appId: string, options?: RequestOptions): ApiPromise<App> {
    return this.api.call('GET', '/apps/{appId}', { id: appId, options });
  }

  /** Fields that are left out keep their values, and null takes one away. */
  update(
    appId: string,
    changes: BodyOf<'PUT', '/apps/{appId}'>,
    { upsert, ...options }: UpdateOptions = {},
  ): ApiPromise<App> {
    const call = { id: appId, query: { upsert }, body: changes, options };
    return this.api.call('PUT', '/apps/{appId}', call);
  }

  /** Deletes its webhooks too, and cancels their pending deliveries. */
  delete(appId: string, options?: RequestOptions): ApiPromise<undefined> {
    return this.api.call('DELETE', '/apps/{appId}', { id: appId, options });
  }

  /** Lets the deliveries of all its webhooks wait, those that it gets later too, until `resume` or `until`. */
  hold(appId: string, hold?: BeginHold, options?: RequestOptions): ApiPromise<App> {
    return this.api.call('POST', '/apps/{appId}/hold', { id: appId, body: hold, options });
  }

  /** Ends the hold: what waits is delivered in the background, oldest first. */
  resume(appId: string, pace?: EndHold, options?: RequestOptions): ApiPromise<App> {
    return this.api.call('POST', '/apps/{appId}/resume', { id: appId, body: pace, options });
  }

  /** Finds apps of all projects by a part of the name, by id, or by a list of ids. */
  find(
    query?: Omit<QueryOf<'GET', '/find-apps'>, 'ids'> & { ids?: readonly string[] },
    options?: RequestOptions,
  ): List<FoundApp> {
    return this.api.byCursor('/find-apps', { query, options });
  }

  /** Counts of the apps with these ids. */
  counts(ids: readonly string[], options?: RequestOptions): ApiPromise<AppCounts[]> {
    return this.api.call('GET', '/app-counts', { query: { ids }, options });
  }
}

/** The catalogue of a project: what its messages are called and what they contain. */
export class EventTypes extends Resource {
  create(
    projectId: string,
    eventType: CreateEventType,
    options?: CreateOptions,
  ): ApiPromise<EventType> {
    const call = { id: projectId, body: eventType, options };
    return this.api.create('/projects/{projectId}/event-types', call);
  }

  /** By name, without schema and example. */
  list(
    projectId: string,
    query?: QueryOf<'GET', '/projects/{projectId}/event-types'>,
    options?: RequestOptions,
  ): List<ListedEventType> {
    return this.api.bySkip('/projects/{projectId}/event-types', { id: projectId, query, options });
  }

  /** With `version`, shows an earlier schema. */
  get(
    projectId: string,
    name: string,
    query?: QueryOf<'GET', '/projects/{projectId}/event-types/{eventTypeName}'>,
    options?: RequestOptions,
  ): ApiPromise<EventType> {
    const call = { id: [projectId, name], query, options };
    return this.api.call('GET', '/projects/{projectId}/event-types/{eventTypeName}', call);
  }

  /** Fields that are left out keep their values, and null takes one away. With `upsert`, creates what is not there. */
  update(
    projectId: string,
    name: string,
    changes: BodyOf<'PUT', '/projects/{projectId}/event-types/{eventTypeName}'>,
    { upsert, ...options }: UpdateOptions = {},
  ): ApiPromise<EventType> {
    const call = { id: [projectId, name], query: { upsert }, body: changes, options };
    return this.api.call('PUT', '/projects/{projectId}/event-types/{eventTypeName}', call);
  }

  delete(projectId: string, name: string, options?: RequestOptions): ApiPromise<undefined> {
    const call = { id: [projectId, name], options };
    return this.api.call('DELETE', '/projects/{projectId}/event-types/{eventTypeName}', call);
  }

  /** Makes and changes event types until they are as the webhooks of an OpenAPI document; with `dryRun`, says how. */
  import(
    projectId: string,
    body: ImportEventTypes,
    options?: RequestOptions,
  ): ApiPromise<ImportedEventTypes> {
    const call = { id: projectId, body, options };
    return this.api.call('POST', '/projects/{projectId}/import-event-types', call);
  }

  /** The OpenAPI document of the event types that are not archived. */
  export(projectId: string, options?: RequestOptions): ApiPromise<Record<string, unknown>> {
    const call = { id: projectId, options };
    return this.api.call('GET', '/projects/{projectId}/export-event-types', call);
  }

  /** Those that an app may receive: the types of its project that are not archived. */
  listOfApp(
    appId: string,
    query?: QueryOf<'GET', '/apps/{appId}/event-types'>,
    options?: RequestOptions,
  ): List<ListedEventType> {
    return this.api.bySkip('/apps/{appId}/event-types', { id: appId, query, options });
  }

  getOfApp(appId: string, name: string, options?: RequestOptions): ApiPromise<EventType> {
    const call = { id: [appId, name], options };
    return this.api.call('GET', '/apps/{appId}/event-types/{eventTypeName}', call);
  }
}

export class Webhooks extends Resource {
  /** Whether a message would pass a filter, and which condition fails. Stores and sends nothing. */
  testFilter(test: TestFilter, options?: RequestOptions): ApiPromise<TestedFilter> {
    return this.api.call('POST', '/test-filter', { body: test, options });
  }

  create(webhook: CreateWebhook, options?: CreateOptions): ApiPromise<WebhookWithAuth> {
    return this.api.create('/webhooks', { body: webhook, options });
  }

  /** Oldest first. */
  list(query?: QueryOf<'GET', '/webhooks'>, options?: RequestOptions): List<Webhook> {
    return this.api.bySkip('/webhooks', { query, options });
  }

  get(
    webhookId: string,
    query?: QueryOf<'GET', '/webhooks/{webhookId}'>,
    options?: RequestOptions,
  ): ApiPromise<WebhookWithAuth> {
    return this.api.call('GET', '/webhooks/{webhookId}', { id: webhookId, query, options });
  }

  /** Fields that are left out keep their values, and null takes one away. */
  update(
    webhookId: string,
    changes: BodyOf<'PUT', '/webhooks/{webhookId}'>,
    { upsert, ...options }: UpdateOptions = {},
  ): ApiPromise<Webhook> {
    const call = { id: webhookId, query: { upsert }, body: changes, options };
    return this.api.call('PUT', '/webhooks/{webhookId}', call);
  }

  /** Cancels its pending deliveries. */
  delete(webhookId: string, options?: RequestOptions): ApiPromise<undefined> {
    return this.api.call('DELETE', '/webhooks/{webhookId}', { id: webhookId, options });
  }

  /** Creates a new secret for the webhook; the old one is valid beside it for a while. */
  rotateSecret(
    webhookId: string,
    rotation?: RotateSecret,
    options?: CreateOptions,
  ): ApiPromise<Webhook> {
    const call = { id: webhookId, body: rotation, options };
    return this.api.create('/webhooks/{webhookId}/rotate-secret', call);
  }

  /** Sends a test message to this webhook alone, with the example of an `eventType` or a small payload; returns its delivery. */
  test(webhookId: string, test?: TestWebhook, options?: CreateOptions): ApiPromise<Delivery> {
    return this.api.create('/webhooks/{webhookId}/test', { id: webhookId, body: test, options });
  }

  /** Ends its pending deliveries, however many there are. */
  cancelPending(
    webhookId: string,
    pending: CancelPending = {},
    options?: RequestOptions,
  ): ApiPromise<PendingCancelled> {
    const call = { id: webhookId, body: pending, options };
    return this.api.call('POST', '/webhooks/{webhookId}/cancel-pending', call);
  }

  health(webhookId: string, options?: RequestOptions): ApiPromise<WebhookHealth> {
    return this.api.call('GET', '/webhooks/{webhookId}/health', { id: webhookId, options });
  }

  /** Lets its deliveries wait, with their attempt numbers, until `resume` or `until`. */
  hold(webhookId: string, hold?: BeginHold, options?: RequestOptions): ApiPromise<Webhook> {
    const call = { id: webhookId, body: hold, options };
    return this.api.call('POST', '/webhooks/{webhookId}/hold', call);
  }

  /** Ends the hold: what waits is delivered in the background, oldest first. `waiting` of `get` shows what is left. */
  resume(webhookId: string, pace?: EndHold, options?: RequestOptions): ApiPromise<Webhook> {
    const call = { id: webhookId, body: pace, options };
    return this.api.call('POST', '/webhooks/{webhookId}/resume', call);
  }

  /** The ordering keys whose deliveries wait, blocked ones first, each kind oldest first. */
  orderingKeys(
    webhookId: string,
    query?: QueryOf<'GET', '/webhooks/{webhookId}/ordering-keys'>,
    options?: RequestOptions,
  ): List<OrderingKey> {
    const call = { id: webhookId, query, options };
    return this.api.byCursor('/webhooks/{webhookId}/ordering-keys', call);
  }

  /** Goes on behind the exhausted delivery at which an ordering key is blocked. */
  skipOrderingKey(
    webhookId: string,
    blocked: SkipOrderingKey,
    options?: RequestOptions,
  ): ApiPromise<SkippedOrderingKey> {
    const call = { id: webhookId, body: blocked, options };
    return this.api.call('POST', '/webhooks/{webhookId}/ordering-keys/skip', call);
  }

  /** Finds webhooks by a part of the URL or name, by id, or by a list of ids. */
  find(
    query?: Omit<QueryOf<'GET', '/find-webhooks'>, 'ids'> & { ids?: readonly string[] },
    options?: RequestOptions,
  ): List<FoundWebhook> {
    return this.api.byCursor('/find-webhooks', { query, options });
  }
}

export class Deliveries extends Resource {
  /** Deliveries of the newest message first, without their attempts. A page may be empty although more follow. */
  list(query?: QueryOf<'GET', '/deliveries'>, options?: RequestOptions): List<ListedDelivery> {
    return this.api.byCursor('/deliveries', { query, options });
  }

  /** Returns a delivery with its newest 200 attempts. */
  get(deliveryId: string, options?: RequestOptions): ApiPromise<Delivery> {
    return this.api.call('GET', '/deliveries/{deliveryId}', { id: deliveryId, options });
  }

  /** Makes one more attempt of a delivery in a final state. It is not retried. */
  resend(deliveryId: string, options?: CreateOptions): ApiPromise<Delivery> {
    return this.api.create('/deliveries/{deliveryId}/resend', { id: deliveryId, options });
  }

  /** Ends a pending delivery. The success of an attempt that is under way still counts. */
  cancel(deliveryId: string, options?: RequestOptions): ApiPromise<Delivery> {
    return this.api.call('POST', '/deliveries/{deliveryId}/cancel', { id: deliveryId, options });
  }

  /** Erases bodies and headers of the responses that the delivery has so far, for good. */
  eraseResponses(deliveryId: string, options?: RequestOptions): ApiPromise<ErasedResponses> {
    const call = { id: deliveryId, options };
    return this.api.call('POST', '/deliveries/{deliveryId}/erase-responses', call);
  }
}

/** Cancellations of every pending delivery that a filter selects, of all webhooks. */
export class Cancellations extends Resource {
  /** Ends the pending deliveries that the filter selects, which needs a field besides `status`. */
  start(filter: DeliveryFilter, options?: CreateOptions): ApiPromise<Cancellation> {
    return this.api.create('/deliveries/cancel', { body: filter, options });
  }

  /** Counts the deliveries that a cancellation would end, and their webhooks. */
  estimate(
    query: QueryOf<'GET', '/deliveries/cancel/estimate'>,
    options?: RequestOptions,
  ): ApiPromise<DeliveryPlan> {
    return this.api.call('GET', '/deliveries/cancel/estimate', { query, options });
  }

  /** Newest first. */
  list(query?: QueryOf<'GET', '/cancellations'>, options?: RequestOptions): List<Cancellation> {
    return this.api.byCursor('/cancellations', { query, options });
  }

  get(cancellationId: string, options?: RequestOptions): ApiPromise<Cancellation> {
    const call = { id: cancellationId, options };
    return this.api.call('GET', '/cancellations/{cancellationId}', call);
  }
}

/** Resends of every failed delivery of a webhook, an app or a filter, and replays of messages that a webhook has missed. */
export class Resends extends Resource {
  startForWebhook(
    webhookId: string,
    resend: ResendFailedOfWebhook,
    options?: CreateOptions,
  ): ApiPromise<Resend> {
    const call = { id: webhookId, body: resend, options };
    return this.api.create('/webhooks/{webhookId}/resend-failed', call);
  }

  startForApp(appId: string, resend: ResendFailed, options?: CreateOptions): ApiPromise<Resend> {
    return this.api.create('/apps/{appId}/resend-failed', { id: appId, body: resend, options });
  }

  /** Of the failed deliveries that the filter selects, which needs a field besides `status`, whatever their webhook. */
  startForFilter(filter: DeliveryFilter, options?: CreateOptions): ApiPromise<Resend> {
    return this.api.create('/deliveries/resend', { body: filter, options });
  }

  /** Counts the deliveries that a resend would send, and their webhooks. */
  estimateForFilter(
    query: QueryOf<'GET', '/deliveries/resend/estimate'>,
    options?: RequestOptions,
  ): ApiPromise<DeliveryPlan> {
    return this.api.call('GET', '/deliveries/resend/estimate', { query, options });
  }

  /** Counts the deliveries that a resend would send. */
  estimateForWebhook(
    webhookId: string,
    query: QueryOf<'GET', '/webhooks/{webhookId}/resend-failed/estimate'>,
    options?: RequestOptions,
  ): ApiPromise<ResendEstimate> {
    const call = { id: webhookId, query, options };
    return this.api.call('GET', '/webhooks/{webhookId}/resend-failed/estimate', call);
  }

  /** Counts the deliveries that a resend would send. */
  estimateForApp(
    appId: string,
    query: QueryOf<'GET', '/apps/{appId}/resend-failed/estimate'>,
    options?: RequestOptions,
  ): ApiPromise<ResendEstimate> {
    const call = { id: appId, query, options };
    return this.api.call('GET', '/apps/{appId}/resend-failed/estimate', call);
  }

  /** Sends a webhook the messages of its app in a period that it was not among the targets of. */
  startReplay(
    webhookId: string,
    replay: ReplayMissing,
    options?: CreateOptions,
  ): ApiPromise<Resend> {
    const call = { id: webhookId, body: replay, options };
    return this.api.create('/webhooks/{webhookId}/replay-missing', call);
  }

  /** Counts the messages that a replay would send. */
  estimateReplay(
    webhookId: string,
    query: QueryOf<'GET', '/webhooks/{webhookId}/replay-missing/estimate'>,
    options?: RequestOptions,
  ): ApiPromise<ReplayEstimate> {
    const call = { id: webhookId, query, options };
    return this.api.call('GET', '/webhooks/{webhookId}/replay-missing/estimate', call);
  }

  /** Newest first. */
  list(query?: QueryOf<'GET', '/resends'>, options?: RequestOptions): List<Resend> {
    return this.api.byCursor('/resends', { query, options });
  }

  get(resendId: string, options?: RequestOptions): ApiPromise<Resend> {
    return this.api.call('GET', '/resends/{resendId}', { id: resendId, options });
  }

  abort(resendId: string, options?: RequestOptions): ApiPromise<Resend> {
    return this.api.call('POST', '/resends/{resendId}/abort', { id: resendId, options });
  }
}

export class ApiKeys extends Resource {
  /** The result has the key. The API shows it this once. */
  create(apiKey: CreateApiKey, options?: CreateOptions): ApiPromise<CreatedApiKey> {
    return this.api.create('/api-keys', { body: apiKey, options });
  }

  /** Oldest first. */
  list(query?: QueryOf<'GET', '/api-keys'>, options?: RequestOptions): List<ApiKey> {
    return this.api.bySkip('/api-keys', { query, options });
  }

  /** Creates a key with the same rights; the old one is valid beside it for a while. */
  rotate(
    keyId: string,
    rotation?: RotateApiKey,
    options?: CreateOptions,
  ): ApiPromise<CreatedApiKey> {
    return this.api.create('/api-keys/{keyId}/rotate', { id: keyId, body: rotation, options });
  }

  revoke(keyId: string, options?: RequestOptions): ApiPromise<undefined> {
    return this.api.call('DELETE', '/api-keys/{keyId}', { id: keyId, options });
  }
}

/** The keys of `signatureAlgorithm: ed25519`. */
export class SigningKeys extends Resource {
  list(options?: RequestOptions): List<SigningKey> {
    return this.api.whole('/signing-keys', { options });
  }

  rotate(rotation?: RotateSigningKey, options?: CreateOptions): ApiPromise<SigningKey> {
    return this.api.create('/signing-keys/rotate', { body: rotation, options });
  }
}

export class AuditEvents extends Resource {
  /** Newest first. */
  list(query?: QueryOf<'GET', '/audit-events'>, options?: RequestOptions): List<AuditEvent> {
    return this.api.byCursor('/audit-events', { query, options });
  }
}

export class Statistics extends Resource {
  /** Counts and latencies by time. */
  get(query?: QueryOf<'GET', '/stats'>, options?: RequestOptions): ApiPromise<Stats> {
    return this.api.call('GET', '/stats', { query, options });
  }

  overview(query?: QueryOf<'GET', '/overview'>, options?: RequestOptions): ApiPromise<Overview> {
    return this.api.call('GET', '/overview', { query, options });
  }

  /** Failed attempts in groups of the same reason. */
  failures(query?: QueryOf<'GET', '/failures'>, options?: RequestOptions): List<FailureGroup> {
    return this.api.whole('/failures', { query, options });
  }

  /** Webhooks whose deliveries wait because their endpoint keeps failing. */
  circuits(query?: QueryOf<'GET', '/circuits'>, options?: RequestOptions): List<OpenCircuit> {
    return this.api.whole('/circuits', { query, options });
  }
}

export class PortalLinks extends Resource {
  /** The result has the URL, which opens the portal of the app once. */
  create(appId: string, link: CreatePortalLink, options?: CreateOptions): ApiPromise<PortalLink> {
    return this.api.create('/apps/{appId}/portal-links', { id: appId, body: link, options });
  }

  list(query?: QueryOf<'GET', '/portal-links'>, options?: RequestOptions): List<ListedPortalLink> {
    return this.api.bySkip('/portal-links', { query, options });
  }

  revoke(linkId: string, options?: RequestOptions): ApiPromise<undefined> {
    return this.api.call('DELETE', '/portal-links/{linkId}', { id: linkId, options });
  }
}

export class PortalSettingsResource extends Resource {
  get(options?: RequestOptions): ApiPromise<PortalSettings> {
    return this.api.call('GET', '/portal-settings', { options });
  }

  update(changes: UpdatePortalSettings, options?: RequestOptions): ApiPromise<PortalSettings> {
    return this.api.call('PUT', '/portal-settings', { body: changes, options });
  }
}
