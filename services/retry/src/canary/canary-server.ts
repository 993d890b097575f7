import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createByteCollector } from '@posthorn/platform/memory/byte-collector.ts';
import { listen } from '@posthorn/platform/service/listen.ts';
import type { ArrivedCanary } from './receive-canary.ts';

/** A canary message has about 30 bytes. */
const MAX_BODY_BYTES = 4_096;
/** The port may be reachable from the internet. */
const REQUEST_TIMEOUT_MS = 5_000;
const MAX_CONNECTIONS = 100;

/** RFC 9110, section 15.5.2: every 401 has one. The message must be signed as Standard Webhooks says. */
const CHALLENGE = { 'WWW-Authenticate': 'Webhook-Signature realm="posthorn-canary"' };

export interface CanaryServerDeps {
  host: string;
  port: number;
  receive: (arrived: ArrivedCanary) => number;
}

/** Takes POST requests on any path. Throws StartupError when the port is taken. */
export async function startCanaryServer({
  host,
  port,
  receive,
}: CanaryServerDeps): Promise<Server> {
  const server = createServer((request, response) => {
    answer(request, receive).then(
      (status) => response.writeHead(status, status === 401 ? CHALLENGE : {}).end(),
      // The sender has closed the connection.
      () => response.destroy(),
    );
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, { host, port, settings: { host: 'CANARY_HOST', port: 'CANARY_PORT' } });
  return server;
}

async function answer(
  request: IncomingMessage,
  receive: CanaryServerDeps['receive'],
): Promise<number> {
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
