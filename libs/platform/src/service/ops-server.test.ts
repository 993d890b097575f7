import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listen } from './ops-server.ts';

const settings = { host: 'OPS_HOST', port: 'OPS_PORT' };
const start = (host: string, port = 0) => listen(createServer(), { host, port, settings });

test.each(['192.0.2.1', '2001:db8::1'])(
  'a start on %s, which is no address of this machine, names the setting of the address',
  async (host) => {
    await expect(start(host)).rejects.toThrow(
      new RegExp(`^Cannot listen on ${host}: E[A-Z_]+. Set OPS_HOST to an address of this machine`),
    );
  },
);

test('a start on a port that is taken names the setting of the port', async () => {
  const first = createServer().listen(0, '127.0.0.1');
  await once(first, 'listening');
  const { port } = first.address() as AddressInfo;
  const refusal = `Port ${port} on 127.0.0.1 is taken by another process. Free it, or set OPS_PORT to another port.`;
  await expect(start('127.0.0.1', port)).rejects.toThrow(refusal);
  first.close();
});
