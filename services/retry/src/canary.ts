import { isSignedWith } from '@posthorn/domain/request/signature.ts';
import { createLoop, stopSoon } from '@posthorn/platform/async/loop.ts';
import { createByteCollector } from '@posthorn/platform/memory/byte-collector.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { StartupError } from '@posthorn/platform/service/errors.ts';
import { closeServer, listen } from '@posthorn/platform/service/ops-server.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { z } from 'zod';
import type { canarySettings } from './config.ts';
import { openResponse } from './open-response.ts';

type CanaryConfig = z.infer<typeof canarySettings>;

const CLOSE_AFTER_MS = 1_000;
/** A canary message has about 30 bytes. */
const MAX_BODY_BYTES = 4_096;
/** The port may be reachable from the internet. */
const REQUEST_TIMEOUT_MS = 5_000;
const MAX_CONNECTIONS = 100;

/** RFC 9110, section 15.5.2: every 401 has one. The message must be signed as Standard Webhooks says. */
const CHALLENGE = { 'WWW-Authenticate': 'Webhook-Signature realm="posthorn-canary"' };

/**
 * Sends a message to itself again and again, through the gateway's front door, when settings say so. Each process sends,
 * and any of them may receive: they share one webhook. Throws StartupError when only some of the settings are set.
 */
export async function startCanary(
  context: Pick<
    ServiceContext<CanaryConfig & { OPS_HOST: string }>,
    'config' | 'lifecycle' | 'registry' | 'logger'
  >,
): Promise<void> {
  const { config, lifecycle, registry, logger } = context;
  const addresses = readCanary(config);
  if (!addresses) return;
  const { apiKey, gatewayUrl, receiverUrl } = addresses;
  const { send, receive } = createCanary({
    api: createCanaryApi(gatewayUrl, apiKey, lifecycle.stopping),
    receiverUrl,
    metrics: createCanaryMetrics(registry, systemClockMs),
    nowMs: systemClockMs,
  });
  const server = createServer((request, response) => {
    respond(request, receive).then(
      (status) => response.writeHead(status, status === 401 ? CHALLENGE : {}).end(),
      // The sender has closed the connection.
      () => response.destroy(),
    );
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = MAX_CONNECTIONS;
  const { OPS_HOST: host, CANARY_PORT: port } = config;
  await listen(server, { host, port, settings: { host: 'OPS_HOST', port: 'CANARY_PORT' } });
  lifecycle.onStop('canary receiver', () => closeServer(server, CLOSE_AFTER_MS));
  const loop = createLoop({ name: 'canary', everyMs: config.CANARY_INTERVAL, run: send, logger });
  loop.start();
  lifecycle.onStop('canary', () => stopSoon(loop));
}

/** Returns null when the canary is off. Throws StartupError that names the missing settings when only some are set. */
export function readCanary(
  config: Pick<CanaryConfig, 'CANARY_API_KEY' | 'CANARY_GATEWAY_URL' | 'CANARY_RECEIVER_URL'>,
): { apiKey: string; gatewayUrl: string; receiverUrl: string } | null {
  const { CANARY_API_KEY, CANARY_GATEWAY_URL, CANARY_RECEIVER_URL } = config;
  if (CANARY_API_KEY && CANARY_GATEWAY_URL && CANARY_RECEIVER_URL) {
    return {
      apiKey: CANARY_API_KEY,
      gatewayUrl: CANARY_GATEWAY_URL.replace(/\/$/, ''),
      receiverUrl: CANARY_RECEIVER_URL,
    };
  }
  const all = Object.entries({ CANARY_API_KEY, CANARY_GATEWAY_URL, CANARY_RECEIVER_URL });
  const missing = all.filter(([, value]) => !value).map(([name]) => name);
  if (missing.length === all.length) return null;
  throw new StartupError(
    `The canary also needs ${missing.join(' and ')}. Without all three settings it is off.`,
  );
}

async function respond(request: IncomingMessage, receive: Canary['receive']): Promise<number> {
  if (request.method !== 'POST') return 405;
  const payload = await readBody(request);
  if (payload === null) return 413;
  const header = (name: string): string => String(request.headers[name] ?? '');
  return receive({
    messageId: header('webhook-id'),
    timestamp: header('webhook-timestamp'),
    signature: header('webhook-signature'),
    payload,
  });
}

/** Returns null when the body is too long, or comes in absurdly small chunks. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const body = createByteCollector({ maxBytes: MAX_BODY_BYTES });
  for await (const chunk of request as AsyncIterable<Buffer>) {
    body.add(chunk);
    if (body.receivedBytes() > MAX_BODY_BYTES || body.isShredded()) return null;
  }
  return body.bytes();
}

interface CanaryDeps {
  api: CanaryApi;
  receiverUrl: string;
  metrics: CanaryMetrics;
  nowMs: () => number;
}

interface Canary {
  /** Sends one message. Counts a failure and rejects when the gateway does not accept it. */
  send: () => Promise<void>;
  /**
   * Returns the status of the response to a delivery, and notes its arrival. The sender is to come again (503) while this
   * process does not know the secret.
   */
  receive: (arrived: ArrivedCanary) => 204 | 400 | 401 | 503;
}

/** A delivery as it arrived. */
export interface ArrivedCanary {
  /** Values of `webhook-id`, `webhook-timestamp` and `webhook-signature`; '' without them. */
  messageId: string;
  timestamp: string;
  signature: string;
  payload: Buffer;
}

const payloadSchema = z.object({ sentAtMs: z.number() });

export function createCanary({ api, receiverUrl, metrics, nowMs }: CanaryDeps): Canary {
  /** The webhook that signs; null until it is known. */
  let webhook: CanaryWebhook | null = null;
  /** False when it is to be read again before the next message: it may have been deleted, or its secret rotated. */
  let isFresh = false;

  async function open(): Promise<CanaryWebhook> {
    if (webhook && isFresh) return webhook;
    try {
      webhook = await api.openWebhook(receiverUrl);
      isFresh = true;
      return webhook;
    } catch (error) {
      metrics.countFailure('setup');
      throw error;
    }
  }

  return {
    async send() {
      const { id } = await open();
      try {
        await api.send(id, { sentAtMs: nowMs() });
      } catch (error) {
        metrics.countFailure('not_accepted');
        isFresh = false;
        throw error;
      }
    },
    receive({ messageId, timestamp, signature, payload }) {
      if (!webhook) return 503;
      const signed = { messageId, timestampSeconds: Number(timestamp), payload };
      if (!isSignedWith(webhook.secret, signature, signed)) {
        metrics.countFailure('wrong_signature');
        isFresh = false;
        return 401;
      }
      const read = payloadSchema.safeParse(parseJson(payload));
      if (!read.success) {
        metrics.countFailure('unreadable');
        return 400;
      }
      metrics.noteArrival(read.data.sentAtMs);
      return 204;
    },
  };
}

function parseJson(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    return null;
  }
}

const TIMEOUT_MS = 5_000;
const PAGE = 1_000;
/** By which every retry process finds the webhook that one of them has created. */
const NAME = 'Posthorn canary';

interface CanaryWebhook {
  id: string;
  secret: string;
}

export interface CanaryApi {
  /** Finds the webhook of the canary, or creates it with a project and an app; it then has this URL. */
  openWebhook: (receiverUrl: string) => Promise<CanaryWebhook>;
  send: (webhookId: string, payload: object) => Promise<void>;
}

/** The gateway did not respond with a success. */
class CanaryRefusedError extends Error {
  override readonly name = 'CanaryRefusedError';
}

const createdSchema = z.object({ data: z.object({ id: z.string() }) });
const webhookSchema = z.object({
  id: z.string(),
  name: z.string(),
  url: z.string(),
  secret: z.string(),
});
const pageSchema = z.object({ data: z.array(webhookSchema) });

/**
 * A client of the gateway's front door; `signal` ends its requests. Each function rejects when there is no response within
 * five seconds.
 */
function createCanaryApi(gatewayUrl: string, apiKey: string, signal: AbortSignal): CanaryApi {
  async function call(method: string, path: string, body?: object): Promise<unknown> {
    const response = await openResponse(`${gatewayUrl}/api/v1${path}`, {
      method,
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: body && Buffer.from(JSON.stringify(body)),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const content = await text(response);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status <= 299) return JSON.parse(content);
    throw new CanaryRefusedError(`${method} ${path} got status ${status}`);
  }

  async function create(path: string, body: object): Promise<string> {
    return createdSchema.parse(await call('POST', path, body)).data.id;
  }

  async function find(): Promise<z.infer<typeof webhookSchema> | null> {
    for (let skip = 0; ; skip += PAGE) {
      const { data } = pageSchema.parse(await call('GET', `/webhooks?limit=${PAGE}&skip=${skip}`));
      const found = data.find(({ name }) => name === NAME);
      if (found) return found;
      if (data.length < PAGE) return null;
    }
  }

  async function createWebhook(url: string): Promise<CanaryWebhook> {
    const projectId = await create('/projects', { name: NAME });
    const appId = await create('/apps', { name: NAME, projectId });
    const created = await call('POST', '/webhooks', { name: NAME, url, appId });
    return z.object({ data: webhookSchema.pick({ id: true, secret: true }) }).parse(created).data;
  }

  return {
    async openWebhook(receiverUrl) {
      const found = await find();
      if (!found) return createWebhook(receiverUrl);
      if (found.url !== receiverUrl)
        await call('PUT', `/webhooks/${found.id}`, { url: receiverUrl });
      return found;
    },
    async send(webhookId, payload) {
      await call('POST', '/webhook-messages', { webhookId, payload });
    },
  };
}

const FAILURES = ['setup', 'not_accepted', 'wrong_signature', 'unreadable'] as const;

/**
 * `setup`: its webhook could not be found or created. `not_accepted`: the gateway did not accept a message. The others
 * are about deliveries.
 */
type CanaryFailure = (typeof FAILURES)[number];

interface CanaryMetrics {
  countFailure: (reason: CanaryFailure) => void;
  /** A message that was sent at `sentAtMs` (since 1970) has arrived now. */
  noteArrival: (sentAtMs: number) => void;
}

export function createCanaryMetrics(registry: Registry, nowMs: () => number): CanaryMetrics {
  const registers = [registry];
  const failures = new Counter({
    name: 'posthorn_canary_failures_total',
    help: 'Canary messages that failed, by reason.',
    labelNames: ['reason'],
    registers,
  });
  startAtZero(failures, 'reason', FAILURES);
  const duration = new Histogram({
    name: 'posthorn_canary_duration_seconds',
    help: 'Time from the sending of a canary message to its arrival.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    registers,
  });
  // Nothing has arrived yet: a canary that never works gets old too.
  let newestMs = nowMs();
  new Gauge({
    name: 'posthorn_canary_age_seconds',
    help: 'Time since the newest canary message that arrived at this process was sent. Take the lowest of all processes.',
    registers,
    collect() {
      this.set(Math.max(0, nowMs() - newestMs) / 1_000);
    },
  });
  return {
    countFailure: (reason) => {
      failures.inc({ reason });
    },
    noteArrival: (sentAtMs) => {
      newestMs = Math.max(newestMs, sentAtMs);
      duration.observe(Math.max(0, nowMs() - sentAtMs) / 1_000);
    },
  };
}
