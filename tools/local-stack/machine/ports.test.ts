import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { canConnect, freePorts, requireFreePorts } from './ports.ts';

describe('ports', () => {
  test('that are free are all different', async () => {
    expect(new Set(await freePorts(20)).size).toBe(20);
  });

  test('that are taken are all told at once, with the variable that changes each', async () => {
    const servers = [createServer().listen(0, '127.0.0.1'), createServer().listen(0, '127.0.0.1')];
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const [a = 0, b = 0] = servers.map((server) => (server.address() as { port: number }).port);
    const needed = [
      { port: a, use: 'Kafka', variable: 'KAFKA_PORT' },
      { port: b, use: 'the gateway', variable: 'PORT' },
    ];
    await expect(requireFreePorts(needed)).rejects.toThrow(
      `Port ${a}, for Kafka, is taken. Free it, or set KAFKA_PORT to another one.\n` +
        `Port ${b}, for the gateway, is taken. Free it, or set PORT to another one.`,
    );
    for (const server of servers) server.close();
  });

  test('given to two uses at once are refused', async () => {
    const [port = 0] = await freePorts(1);
    const needed = ['KAFKA_PORT', 'PORT'].map((variable) => ({ port, use: 'x', variable }));
    await expect(requireFreePorts(needed)).rejects.toThrow('set PORT to another one');
  });

  test('without a listener cannot be connected to', async () => {
    const [port = 0] = await freePorts(1);
    expect(await canConnect('127.0.0.1', port)).toBe(false);
  });
});
