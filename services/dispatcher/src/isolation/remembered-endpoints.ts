import { walkInSlices } from '@posthorn/platform/async/loop.ts';
import type { LimitBounds } from './concurrency-limit.ts';
import { type HandedOverEndpoint, inherit } from './endpoint.ts';
import type { Candidate } from './gate.ts';
import type { Handover } from './handover.ts';
import { createHostPaces, type HostPaces } from './host-pace.ts';
import {
  createQueuedEndpoint,
  isForgettable,
  isIdle,
  isIdleWithoutLimit,
  moveToUrl,
  type QueuedEndpoint,
} from './queued-endpoint.ts';

export interface RememberingDeps {
  limits: {
    /** Attempts at once to one endpoint. */
    perEndpoint: LimitBounds;
    /** Attempts per second of one company to one host; 0 for no limit. */
    perHostPerSecond: number;
  };
  handover: Pick<Handover, 'pausedUntilMs'>;
  nowMs: () => number;
  monotonicMs: () => number;
}

/** Beyond this many, an endpoint is forgotten as soon as it is idle, unless it has a pause or a pace. */
export const MAX_IDLE_ENDPOINTS = 10_000;
/** The size of one endpoint in memory. */
export const ENDPOINT_BYTES = 1_024;

/** The endpoints that this dispatcher has learned about, and their hosts. */
export class RememberedEndpoints {
  readonly #deps: RememberingDeps;
  /** Called when the URL of an endpoint was changed. */
  readonly #onMoved: (endpoint: QueuedEndpoint) => void;
  readonly #endpoints = new Map<string, QueuedEndpoint>();
  readonly #walk = walkInSlices(this.#endpoints);
  readonly #hosts: HostPaces;

  constructor(deps: RememberingDeps, onMoved: (endpoint: QueuedEndpoint) => void) {
    this.#deps = deps;
    this.#onMoved = onMoved;
    this.#hosts = createHostPaces(deps.limits.perHostPerSecond);
  }

  /** By webhook id. */
  all(): ReadonlyMap<string, QueuedEndpoint> {
    return this.#endpoints;
  }

  /**
   * Returns the endpoint of the candidate, with the rate limit and the host that it has now. A new one is added with what
   * its former owner has learned.
   */
  update(candidate: Candidate, learned: HandedOverEndpoint | null): QueuedEndpoint {
    const { perEndpoint } = this.#deps.limits;
    const { webhookId, url, rateLimitPerSecond } = candidate;
    let endpoint = this.#endpoints.get(webhookId);
    if (!endpoint) {
      endpoint = createQueuedEndpoint(candidate, perEndpoint);
      endpoint.pausedUntilMs = this.#deps.handover.pausedUntilMs(candidate);
      if (learned) inherit(endpoint, learned, perEndpoint, this.#deps.monotonicMs());
      this.#endpoints.set(webhookId, endpoint);
    }
    if (endpoint.url !== url) this.#moveTo(endpoint, url);
    endpoint.rateLimitPerSecond = rateLimitPerSecond;
    endpoint.host = this.#hosts.of(endpoint.hostKey);
    return endpoint;
  }

  /** A changed URL is another endpoint: the pause of the old one would keep it without attempts for an hour. */
  #moveTo(endpoint: QueuedEndpoint, url: string): void {
    moveToUrl(endpoint, url, this.#deps.limits.perEndpoint);
    endpoint.pausedUntilMs = this.#deps.handover.pausedUntilMs(endpoint);
    this.#onMoved(endpoint);
  }

  /** Applies the pauses that former owners were asked for. */
  applyPauses(): void {
    for (const endpoint of this.#endpoints.values()) {
      const untilMs = this.#deps.handover.pausedUntilMs(endpoint);
      endpoint.pausedUntilMs = Math.max(endpoint.pausedUntilMs, untilMs);
    }
  }

  /** Forgets idle endpoints of webhooks that this process does not own. */
  forgetOthers(isOwned: (webhookId: string) => boolean): void {
    for (const endpoint of this.#endpoints.values()) {
      if (isIdle(endpoint) && !isOwned(endpoint.webhookId))
        this.#endpoints.delete(endpoint.webhookId);
    }
  }

  /** Forgets what has been idle for a minute. The hosts of the endpoints with attempts that wait are kept. */
  forgetIdle(withWaiting: ReadonlySet<QueuedEndpoint>): void {
    const nowMs = this.#deps.monotonicMs();
    this.#walk((endpoint) => {
      if (isForgettable(endpoint, nowMs)) this.#endpoints.delete(endpoint.webhookId);
    });
    const now = { monotonicMs: nowMs, epochMs: this.#deps.nowMs() };
    this.#hosts.forgetIdle(withWaiting, now);
  }

  /** Forgets this endpoint at once when there are too many and nothing about it must be kept. */
  forgetIfTooMany(endpoint: QueuedEndpoint): void {
    if (this.#endpoints.size <= MAX_IDLE_ENDPOINTS) return;
    if (!isIdleWithoutLimit(endpoint, this.#deps.monotonicMs())) return;
    this.#endpoints.delete(endpoint.webhookId);
  }
}
