import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { StartupError } from './errors.ts';
import type { ServiceContext } from './run-service.ts';

interface OpsServerDeps {
  host: string;
  port: number;
  registry: Registry;
  /** False while starting, while stopping, and while a dependency that the service cannot do without is away. */
  isReady: () => boolean;
  /** The thing that the start waits for, for the response of `/readyz`; null when it does not wait. */
  waitsFor?: () => string | null;
  /** False only when a restart would help; an unavailable dependency is no reason. */
  isAlive: () => boolean;
}

interface OpsConfig {
  OPS_HOST: string;
  OPS_PORT: number;
}

/**
 * Opens the management port of a service. It stays open while everything else drains. `isAlive` is for
 * services with consumers, see Consumption.
 */
export async function openOpsServer(
  { config, lifecycle, registry }: ServiceContext<OpsConfig>,
  isReady: () => boolean,
  isAlive: () => boolean = () => true,
): Promise<void> {
  const { OPS_HOST: host, OPS_PORT: port } = config;
  const server = await startOpsServer({
    host,
    port,
    registry,
    isReady,
    isAlive,
    waitsFor: lifecycle.waitsFor,
  });
  lifecycle.onStop('ops', () => closeServer(server, 1_000));
}

/** Serves `/livez`, `/readyz` and `/metrics` on the management port, separate from public traffic. */
async function startOpsServer(deps: OpsServerDeps): Promise<Server> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    if (path === '/livez') answer(response, deps.isAlive());
    else if (path === '/readyz') answer(response, deps.isReady(), deps.waitsFor?.());
    else if (path === '/metrics') void answerMetrics(response, deps.registry);
    else response.writeHead(404).end('not found\n');
  });
  answerHalfClosed(server);
  const { host, port } = deps;
  await listen(server, { host, port, settings: { host: 'OPS_HOST', port: 'OPS_PORT' } });
  return server;
}

function answer(response: ServerResponse, isGood: boolean, reason?: string | null): void {
  response.writeHead(isGood ? 200 : 503, { 'content-type': 'text/plain' });
  response.end(isGood ? 'ok\n' : `${reason ?? 'unavailable'}\n`);
}

async function answerMetrics(response: ServerResponse, registry: Registry): Promise<void> {
  const text = await registry.metrics();
  response.writeHead(200, { 'content-type': registry.contentType }).end(text);
}

/** Where a server listens, and the settings that say so. */
interface Listening {
  host: string;
  port: number;
  settings: { host: string; port: string };
}

/** Resolves when the server listens. Throws StartupError that names the address or port and its setting. */
export function listen(server: Server, at: Listening): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new StartupError(describe(error, at)));
    });
    server.listen(at.port, at.host, resolve);
  });
}

/**
 * Responds to clients that close their writing side after a request (RFC 9112, section 9.6). Without it Node closes the
 * connection at once, and a message would be stored whose client does not know it. What is written to a client that
 * has gone closes the connection.
 */
export function answerHalfClosed(server: Server): void {
  // A property of every http.Server, which Node's types leave out.
  Object.assign(server, { httpAllowHalfOpen: true });
}

function describe(error: NodeJS.ErrnoException, { host, port, settings }: Listening): string {
  const code = error.code ?? error.message;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is taken by another process. Free it, or set ${settings.port} to another port.`;
    case 'EACCES':
      return `Port ${port} on ${host} is not allowed to this user. Set ${settings.port} to a port from 1024 on.`;
    default:
      return `Cannot listen on ${host}: ${code}. Set ${settings.host} to an address of this machine, such as 127.0.0.1, 0.0.0.0 or ::.`;
  }
}

const IDLE_CHECK_MS = 50;

/** Accepts no new connection, waits up to `drainMs` for running requests, then closes all connections. */
export function closeServer(server: Server, drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    // A keep-alive connection becomes idle only after its last response.
    const idle = setInterval(() => {
      server.closeIdleConnections();
    }, IDLE_CHECK_MS);
    const cut = setTimeout(() => {
      server.closeAllConnections();
    }, drainMs);
    server.close(() => {
      clearInterval(idle);
      clearTimeout(cut);
      resolve();
    });
  });
}
