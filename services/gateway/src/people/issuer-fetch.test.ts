import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { createIssuerFetch, type IssuerFetch, isUnavailable } from './issuer-fetch.ts';

const MAX_BYTES = 262_144;

describe('a request to the issuer [security]', () => {
  let server: Server;
  let url: string;
  let paths: string[];
  let counted: string[];
  let issuerFetch: IssuerFetch;
  let respond: (response: ServerResponse) => void;

  beforeEach(async () => {
    [paths, counted] = [[], []];
    server = createServer((request, response) => {
      paths.push(String(request.url));
      respond(response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    issuerFetch = createIssuerFetch({
      requested: (request, result) => counted.push(`${request} ${result}`),
    });
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Returns whether it failed because the issuer is away, which is how each bound reports itself. */
  const isRefused = (options: object = {}): Promise<boolean> =>
    issuerFetch(url, options).then(() => false, isUnavailable);

  it('has a response of 256 KiB at most, also when it is compressed', async () => {
    respond = (response) => response.end('x'.repeat(MAX_BYTES));
    expect(await (await issuerFetch(url, {})).text()).toHaveLength(MAX_BYTES);
    respond = (response) => response.end('x'.repeat(MAX_BYTES + 1));
    expect(await isRefused()).toBe(true);
    respond = (response) => {
      const packed = gzipSync('x'.repeat(MAX_BYTES + 1));
      expect(packed.byteLength).toBeLessThan(1_000);
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed);
    };
    expect(await isRefused()).toBe(true);
  });

  it('has a response without an end cut off at 256 KiB', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<boolean>();
    respond = (response) => {
      response.on('close', () => {
        resolve(response.writableFinished);
      });
      const write = (): void => {
        let hasRoom = !response.destroyed;
        while (hasRoom) hasRoom = response.write('x'.repeat(16_384)) && !response.destroyed;
      };
      response.on('drain', write);
      write();
    };
    expect(await isRefused()).toBe(true);
    expect(await closed).toBe(false);
  });

  it('follows no redirect', async () => {
    respond = (response) => response.writeHead(302, { location: `${url}/elsewhere` }).end();
    expect((await issuerFetch(url, {})).status).toBe(302);
    expect(paths).toEqual(['/']);
  });

  it('ends with its time while the response still arrives', async () => {
    const { signal, abort } = abortable();
    respond = (response) => {
      response.write('{', () => {
        abort();
      });
    };
    expect(await isRefused({ signal })).toBe(true);
  });

  it.each([500, 503])(
    'is one to an issuer that is away when the response is %i',
    async (status) => {
      respond = (response) => response.writeHead(status).end('{}');
      expect(await isRefused()).toBe(true);
    },
  );

  it('is counted by what it asks for, and by whether there was a response', async () => {
    respond = (response) => response.end('{}');
    await issuerFetch(`${url}/metadata`, {});
    issuerFetch.useEndpoints({
      token_endpoint: `${url}/token`,
      userinfo_endpoint: `${url}/userinfo`,
    });
    await issuerFetch(`${url}/token`, {});
    await issuerFetch(`${url}/userinfo`, {});
    respond = (response) => response.destroy();
    await expect(issuerFetch(`${url}/jwks`, {})).rejects.toThrow('cannot be reached');
    expect(counted).toEqual(['discovery done', 'token done', 'userinfo done', 'keys failed']);
  });
});

function abortable(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    abort: () => {
      controller.abort();
    },
  };
}
