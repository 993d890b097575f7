import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { canConnect, freePorts, requireFreePorts } from './ports.ts';

describe('ports', () => {
  test('that are free differ from each other', async () => {
    expect(new Set(await freePorts(20)).size).toBe(20);
  });

  test('that are free are not those of outgoing connections', async () => {
    expect(Math.max(...(await freePorts(200)))).toBeLessThan(32_768);
  });

  test('that are free are reserved for this process', async () => {
    const [port = 0] = await freePorts(1);
    const other = createSocket('udp4').bind({ port, address: '127.0.0.1', exclusive: true });
    await expect(once(other, 'listening')).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test('that are in use are listed in one message, each with the variable that sets it', async () => {
    const servers = [createServer().listen(0, '127.0.0.1'), createServer().listen(0, '127.0.0.1')];
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const [a = 0, b = 0] = servers.map((server) => (server.address() as { port: number }).port);
    const needed = [
      { port: a, use: 'Kafka', variable: 'KAFKA_PORT' },
      { port: b, use: 'the gateway', variable: 'PORT' },
    ];
    await expect(requireFreePorts(needed)).rejects.toThrow(
      `Port ${a} (Kafka) is in use. Free it, or set KAFKA_PORT to another port.\n` +
        `Port ${b} (the gateway) is in use. Free it, or set PORT to another port.`,
    );
    for (const server of servers) server.close();
  });

  test('that are assigned twice are rejected', async () => {
    const [port = 0] = await freePorts(1);
    const needed = ['KAFKA_PORT', 'PORT'].map((variable) => ({ port, use: 'x', variable }));
    await expect(requireFreePorts(needed)).rejects.toThrow('set PORT to another port');
  });

  test('without a listener cannot be connected to', async () => {
    const [port = 0] = await freePorts(1);
    expect(await canConnect('127.0.0.1', port)).toBe(false);
  });
});
