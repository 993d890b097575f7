import { type GivenHeaders, isBrowser, parseHeaders } from './headers.ts';
import { Messages } from './messages.ts';
import { People } from './people.ts';
import { type Method, Operations, type RawRequest } from './operations.ts';
import {
  ApiKeys,
  Apps,
  AuditEvents,
  Cancellations,
  Deliveries,
  EventTypes,
  PortalLinks,
  PortalSettingsResource,
  Projects,
  Resends,
  SigningKeys,
  Statistics,
  Webhooks,
} from './resources.ts';
import type { ApiPromise } from './results.ts';
import type { Found, Me, SourceIps } from './schema.ts';
import { type Logger, type RequestOptions, Transport } from './transport.ts';

const TIMEOUT_MS = 30_000;
const MAX_RETRIES = 2;

export interface PosthornOptions {
  /**
   * The API key, or a function that returns the present one, which is called for each attempt. `POSTHORN_API_KEY` of the
   * environment by default.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Where the gateway is, such as `https://posthorn.example.com`. `POSTHORN_URL` of the environment by default. */
  baseUrl?: string | undefined;
  /** How long each attempt may take, to the last byte of its answer; 30 s by default. */
  timeoutMs?: number | undefined;
  /**
   * How often an attempt is repeated after a network error, a time-out, 408, 409 `idempotency_key_running`, 429, 500,
   * 502, 503 or 504: 2 by default, and 0 for never. A `Retry-After` of up to a minute is waited for, otherwise 0.5 s, 1 s,
   * and so on up to 8 s. A POST that takes an `Idempotency-Key` has the same in each attempt, and is carried out once.
   */
  maxRetries?: number | undefined;
  /** Makes the requests; the global `fetch` by default. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Receives a line about each attempt and retry, without API key and body; `console` will do. */
  logger?: Logger | undefined;
  /**
   * Headers of every request, such as those of a proxy before the gateway, and your own `User-Agent`. Those that the
   * client sets by itself, such as `Authorization`, are refused.
   */
  headers?: GivenHeaders | undefined;
  /** Ends every call, as the option of a call does, which counts instead of this one. */
  signal?: AbortSignal | undefined;
  /** A browser shows the API key to whoever uses it. The client refuses to start in one without this. */
  dangerouslyAllowBrowser?: boolean | undefined;
}

/** The client of the API. */
export class Posthorn {
  readonly projects: Projects;
  readonly apps: Apps;
  readonly eventTypes: EventTypes;
  readonly webhooks: Webhooks;
  readonly messages: Messages;
  readonly deliveries: Deliveries;
  readonly cancellations: Cancellations;
  readonly resends: Resends;
  readonly apiKeys: ApiKeys;
  readonly signingKeys: SigningKeys;
  readonly auditEvents: AuditEvents;
  readonly statistics: Statistics;
  readonly portalLinks: PortalLinks;
  readonly portalSettings: PortalSettingsResource;
  readonly people: People;
  readonly #api: Operations;

  constructor(options: PosthornOptions = {}) {
    const api = new Operations(new Transport(settingsOf(options)));
    this.#api = api;
    this.projects = new Projects(api);
    this.apps = new Apps(api);
    this.eventTypes = new EventTypes(api);
    this.webhooks = new Webhooks(api);
    this.messages = new Messages(api);
    this.deliveries = new Deliveries(api);
    this.cancellations = new Cancellations(api);
    this.resends = new Resends(api);
    this.apiKeys = new ApiKeys(api);
    this.signingKeys = new SigningKeys(api);
    this.auditEvents = new AuditEvents(api);
    this.statistics = new Statistics(api);
    this.portalLinks = new PortalLinks(api);
    this.portalSettings = new PortalSettingsResource(api);
    this.people = new People(api);
  }

  /** Company, key and scopes of the caller, and the version of the server. */
  me(options?: RequestOptions): ApiPromise<Me> {
    return this.#api.call('GET', '/me', { options });
  }

  /** Finds what has an id, of whatever kind it is. */
  find(id: string, options?: RequestOptions): ApiPromise<Found> {
    return this.#api.call('GET', '/find', { query: { id }, options });
  }

  /** The addresses from which deliveries come. */
  sourceIps(options?: RequestOptions): ApiPromise<SourceIps> {
    return this.#api.call('GET', '/source-ips', { options });
  }

  /**
   * Makes a request for which this version has no method, and returns the `data` of the answer. The path is that of the
   * API, with `/api/v1` before it or not. A POST is repeated only with an `idempotencyKey`, or when its connection was
   * refused: set one where the operation takes it.
   */
  request<T = unknown>(method: Method, path: string, request?: RawRequest): ApiPromise<T> {
    return this.#api.request(method, path, request);
  }
}

function settingsOf(options: PosthornOptions): ConstructorParameters<typeof Transport>[0] {
  if (isBrowser() && !options.dangerouslyAllowBrowser) {
    throw new TypeError(
      'Everybody who opens this page could read the API key. Call the API from your server, or set dangerouslyAllowBrowser.',
    );
  }
  const apiKey = options.apiKey ?? environment('POSTHORN_API_KEY');
  if (!apiKey) throw new TypeError('Set apiKey, or POSTHORN_API_KEY in the environment.');
  return {
    apiKey,
    baseUrl: parseBaseUrl(options.baseUrl ?? environment('POSTHORN_URL')),
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    maxRetries: options.maxRetries ?? MAX_RETRIES,
    // Called as a function of no object, which browsers and workers require.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    logger: options.logger,
    headers: parseHeaders(options.headers),
    signal: options.signal,
  };
}

/** Throws when it is no address of an API. Never shows one with a password. */
function parseBaseUrl(text: string | undefined): string {
  const url = URL.canParse(text ?? '') ? new URL(text ?? '') : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw new TypeError(
      'Set baseUrl, or POSTHORN_URL in the environment, to an http or https address without user name and password.',
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/** Undefined where there is no environment, or where Deno may not read it. */
function environment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name];
  } catch {
    return undefined;
  }
}
