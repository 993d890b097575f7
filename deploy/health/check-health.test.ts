import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const SCRIPT = join(import.meta.dirname, 'check-health.ts');

async function exitCode(port: number, ...args: string[]): Promise<number> {
  const env = { ...process.env, OPS_PORT: String(port) };
  const child = spawn(process.execPath, [SCRIPT, ...args], { env, stdio: 'ignore' });
  const [code] = (await once(child, 'exit')) as [number];
  return code;
}

async function withServer(
  statusOf: (url?: string) => number,
  use: (port: number) => Promise<void>,
): Promise<void> {
  const server = createServer(({ url }, response) => {
    response.writeHead(statusOf(url)).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  await use((server.address() as AddressInfo).port).finally(() => server.close());
}

describe('the health check of the image', () => {
  it('is good when the requested check of the service responds with 200', async () => {
    const isKnown = (url?: string): number => (url === '/livez' || url === '/readyz' ? 200 : 404);
    await withServer(isKnown, async (port) => {
      expect(await exitCode(port)).toBe(0);
      expect(await exitCode(port, '/readyz')).toBe(0);
      expect(await exitCode(port, '/other')).toBe(1);
    });
  });

  it('fails on any other response, and without a listener', async () => {
    let closed = 0;
    await withServer(
      () => 503,
      async (port) => {
        closed = port;
        expect(await exitCode(port)).toBe(1);
      },
    );
    expect(await exitCode(closed)).toBe(1);
  });
});
