import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { closeServer } from './close-server.ts';
import { answerHalfClosed, listen } from './listen.ts';
import type { ServiceContext } from './run-service.ts';

export interface OpsServerDeps {
  host: string;
  port: number;
  registry: Registry;
  /** False while starting, while stopping, and while a dependency that the service cannot do without is away. */
  isReady: () => boolean;
  /** What the start waits for, for the answer of `/readyz`; null when it does not. */
  waitsFor?: () => string | null;
  /** False only when a restart would help; an unavailable dependency is no reason. */
  isAlive: () => boolean;
}

interface OpsConfig {
  OPS_HOST: string;
  OPS_PORT: number;
}

/**
 * Opens the management port of a service. It stays open while the rest drains. `isAlive` is for
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
export async function startOpsServer(deps: OpsServerDeps): Promise<Server> {
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
