import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import express from 'express';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { docsPage } from './docs-page.ts';

const document = { openapi: '3.1.0', info: { title: 'Crème' } };
let server: Server;
let url: string;

beforeAll(async () => {
  server = createServer(express().disable('etag').use(docsPage(document)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Returns the addresses that the page loads. */
async function addressesIn(path: string): Promise<string[]> {
  const html = await (await fetch(url + path)).text();
  return [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address);
}

describe('GET /openapi.json', () => {
  it('returns the document without an envelope', async () => {
    const response = await fetch(`${url}/openapi.json`);
    expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(await response.json()).toEqual(document);
  });

  it('supports HEAD, and no other method', async () => {
    const head = await fetch(`${url}/openapi.json`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await fetch(`${url}/openapi.json`, { method: 'POST' });
    expect(post.status).toBe(404);
  });
});

describe('GET /docs', () => {
  it('returns a page that loads everything from this gateway', async () => {
    const addresses = await addressesIn('/docs');
    expect(addresses.length).toBeGreaterThanOrEqual(4);
    for (const address of addresses) {
      expect(address).toMatch(/^\/[^/]/);
      const response = await fetch(url + address);
      const { length } = await response.text();
      expect([address, response.status, length > 100 || address === '/openapi.json']).toEqual([
        ...[address, 200, true],
      ]);
    }
  });

  it('has no inline script or style, and forbids both', async () => {
    const response = await fetch(`${url}/docs`);
    const html = await response.text();
    expect(html).not.toMatch(/<script>|<style|style=|\son\w+=/);
    expect(html).not.toContain('{{');
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('lets browsers cache the assets of a version for a year, but not the page', async () => {
    const cached = async (path: string) => (await fetch(url + path)).headers.get('cache-control');
    expect(await cached('/docs')).toBe('no-cache');
    expect(await cached('/docs/start.js')).toBe('no-cache');
    const assets = (await addressesIn('/docs')).filter((path) => /^\/docs\/\d/.test(path));
    expect(assets).toHaveLength(3);
    for (const path of assets) expect(await cached(path)).toMatch(/max-age=31536000, immutable/);
  });

  it('serves no other file of the package', async () => {
    const [asset = ''] = (await addressesIn('/docs')).filter((path) => path.endsWith('.css'));
    const folder = asset.slice(0, asset.lastIndexOf('/'));
    const others = ['package.json', 'index.html', '..%2f..%2fzod%2fpackage.json', '.', 'x.js'];
    for (const name of others) expect((await fetch(`${url}${folder}/${name}`)).status).toBe(404);
  });
});
