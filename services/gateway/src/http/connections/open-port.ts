import { closeServer } from '@posthorn/platform/service/close-server.ts';
import { listen } from '@posthorn/platform/service/listen.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Express } from 'express';
import type { GatewayConfig } from '../../config.ts';
import { createHardenedServer } from './harden-server.ts';
import { limitConnections } from './limit-connections.ts';

/**
 * Of one peer address (IPv6: one /64), a proxy in front included, of the 10,000 connections of a gateway. Behind a load
 * balancer all clients are one peer; 2,000 remain for others.
 */
const CONNECTIONS_PER_ADDRESS = 8_000;

/** Serves the API from now on. A stop answers the requests that are under way. */
export async function openPort(
  { config, logger, lifecycle }: ServiceContext<GatewayConfig>,
  app: Express,
): Promise<void> {
  const { HOST: host, PORT: port, DRAIN_TIMEOUT_MS: drainMs } = config;
  const server = createHardenedServer(app);
  limitConnections(server, CONNECTIONS_PER_ADDRESS);
  await listen(server, { host, port, settings: { host: 'HOST', port: 'PORT' } });
  lifecycle.onStop('http', () => closeServer(server, drainMs));
  logger.info({ host, port }, 'listening');
}
