import { closeServer, listen } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Express } from 'express';
import type { Server } from 'node:net';
import type { GatewayConfig } from '../config.ts';
import { addressKey } from '../limits/client-address.ts';
import { createHardenedServer } from './harden-server.ts';

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

/**
 * Closes connections of an address (IPv6: of a /64) that has `max` already, so that one client cannot
 * take all of them.
 */
export function limitConnections(server: Server, max: number): void {
  const open = new Map<string, number>();
  server.on('connection', (socket) => {
    const key = addressKey(socket.remoteAddress);
    const count = open.get(key) ?? 0;
    if (count >= max) {
      socket.destroy();
      return;
    }
    open.set(key, count + 1);
    socket.once('close', () => {
      const left = (open.get(key) ?? 1) - 1;
      if (left === 0) open.delete(key);
      else open.set(key, left);
    });
  });
}
