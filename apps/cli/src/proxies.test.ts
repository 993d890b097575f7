import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { runIn } from '../../../test/support/cli/printing-world.ts';
import {
  startConnectProxy,
  type ConnectProxy,
} from '../../../test/support/receivers/connect-proxy.ts';

/** The proxy alone knows where it is. */
const GATEWAY = 'http://gateway.example.invalid:8080';

let proxy: ConnectProxy;
let api: Server;
let port: number;

beforeEach(async () => {
  api = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"success":true,"data":{"companyId":"comp_1"},"models":[]}');
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  ({ port } = api.address() as AddressInfo);
  proxy = await startConnectProxy();
  proxy.behave({ kind: 'tunnel', port });
});
afterEach(async () => {
  await proxy.close();
  api.closeAllConnections();
  api.close();
});

const whoami = (env: Record<string, string>) =>
  runIn(['whoami', '--json'], { POSTHORN_URL: GATEWAY, ...env });

describe('a proxy of the environment', () => {
  it.each(['HTTP_PROXY', 'http_proxy'])('of %s gets the requests to the gateway', async (name) => {
    expect(await whoami({ [name]: proxy.url.href })).toMatchObject({ code: 0, err: '' });
    expect(proxy.asked).toEqual(['gateway.example.invalid:8080']);
  });

  it.each(['HTTPS_PROXY', 'https_proxy'])('of %s gets those to an https gateway', async (name) => {
    const https = GATEWAY.replace('http', 'https');
    await whoami({ POSTHORN_URL: https, [name]: proxy.url.href });
    expect(proxy.asked).toContain('gateway.example.invalid:8080');
  });

  it('gets those to the service that is imported from', async () => {
    const command = [
      'import',
      'outpost',
      '--dry-run',
      '--url',
      'http://outpost.example.invalid/v1',
    ];
    const own = { POSTHORN_URL: `http://127.0.0.1:${port}`, OUTPOST_API_KEY: 'token' };
    const { code, err } = await runIn(command, { ...own, HTTP_PROXY: proxy.url.href });
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(proxy.asked).toEqual(['outpost.example.invalid:80']);
  });

  it.each([
    ['of NO_PROXY', { NO_PROXY: 'example.com, .example.invalid' }, 3],
    ['on this machine', { POSTHORN_URL: 'this machine' }, 0],
  ])('gets nothing to a host %s', async (_what, env, code) => {
    const here = `http://localhost:${port}`;
    const given = 'POSTHORN_URL' in env ? { POSTHORN_URL: here } : env;
    const ended = await whoami({ HTTP_PROXY: proxy.url.href, ...given });
    expect([ended.code, proxy.asked]).toEqual([code, []]);
  });

  it('needs no scheme', async () => {
    expect(await whoami({ HTTP_PROXY: proxy.url.host })).toMatchObject({ code: 0 });
    expect(proxy.asked).toHaveLength(1);
  });

  it.each(['http://', 'socks5://user:secret@proxy:1', 'http://user:secret@proxy:none'])(
    'that is none is refused, and not shown: %s',
    async (address) => {
      const { code, err } = await whoami({ HTTPS_PROXY: address });
      expect({ code, err }).toEqual({
        code: 2,
        err: expect.stringContaining('HTTPS_PROXY must be an address such as'),
      });
      expect(err).not.toContain('secret');
    },
  );
});
