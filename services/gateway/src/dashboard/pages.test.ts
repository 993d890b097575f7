import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import express from 'express';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { scratchFolder } from '../../../../test/support/process/scratch-folder.ts';
import { sendError } from '../http/send-error.ts';
import { baseOf, filePages, isRefusedFrame, loadFiles, pageText, refusedFrame } from './pages.ts';

describe('file pages', () => {
  const SCRIPT = 'console.log(1);\n'.repeat(100);

  const FRAMED = 'comp_01kdyx3m9e7r8s5tqv2wzcbn4a';

  let folder: string;
  let server: Server;
  let url: string;

  beforeEach(async () => {
    folder = scratchFolder();
    const app = express().disable('etag').enable('strict routing');
    app.use(
      filePages({
        load: () => loadFiles(join(folder, 'dist')),
        originsOf: (id) => Promise.resolve(id === FRAMED ? ['https://app.example.com'] : []),
        deadlines: { within: (_response, step) => step },
      }),
    );
    app.use(sendError(pino({ enabled: false })));
    server = createServer(app);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  function build(): void {
    mkdirSync(join(folder, 'dist/assets'), { recursive: true });
    const page =
      '<!doctype html><html><head><base href="/dashboard/"></head><body>Here</body></html>';
    writeFileSync(join(folder, 'dist/index.html'), page);
    writeFileSync(join(folder, 'dist/icon.svg'), '<svg></svg>');
    writeFileSync(join(folder, 'dist/assets/index-1a2b.js'), SCRIPT);
    writeFileSync(join(folder, 'secret.txt'), 'hush');
  }

  describe('the dashboard', () => {
    test.each([
      '/dashboard',
      '/dashboard/',
      '/dashboard/webhooks',
      '/dashboard/webhooks/wh_1/attempts',
    ])('is one page at %s, with a base for every prefix, which is never kept', async (path) => {
      build();
      const response = await fetch(url + path);
      const text = await response.text();
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(text).toContain('Here');
      const [, base = ''] = /<base href="([^"]+)">/.exec(text) ?? [];
      expect(new URL(base, url + path).href).toBe(`${url}/dashboard/`);
    });

    test('allows nothing but what is from this gateway, nothing inline, and no frame', async () => {
      build();
      const { headers } = await fetch(`${url}/dashboard`);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy.split('; ')).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "base-uri 'self'",
          "form-action 'none'",
          "frame-ancestors 'none'",
        ]),
      );
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
    });

    test('lets the origins of a company frame its portal, and nothing else', async () => {
      build();
      const headersOf = async (path: string) => (await fetch(`${url}/dashboard${path}`)).headers;
      const framed = await headersOf(`/portal/${FRAMED}/webhooks`);
      const policy = framed.get('content-security-policy');
      expect(policy).toContain('frame-ancestors https://app.example.com');
      expect(policy).toContain("img-src 'self' data: https://app.example.com;");
      expect(framed.get('x-frame-options')).toBeNull();
      for (const path of ['/portal/comp_x', `/${FRAMED}`, `/x/portal/${FRAMED}`, '/portal']) {
        const { headers } = { headers: await headersOf(path) };
        expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      }
    });

    test('has assets that are kept for a year, and compressed for who takes that', async () => {
      build();
      const address = `${url}/dashboard/assets/index-1a2b.js`;
      for (const encoding of ['gzip', 'identity']) {
        const response = await fetch(address, { headers: { 'accept-encoding': encoding } });
        expect(await response.text()).toBe(SCRIPT);
        const { headers } = response;
        expect(headers.get('content-encoding')).toBe(encoding === 'gzip' ? 'gzip' : null);
        expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8');
        expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      }
      const icon = await fetch(`${url}/dashboard/icon.svg`);
      expect(icon.headers.get('content-type')).toBe('image/svg+xml');
      expect(icon.headers.get('cache-control')).toBe('public, max-age=3600');
    });

    test.each([
      '/dashboard/assets/index-other.js',
      '/dashboard/..%2fsecret.txt',
      '/dashboard/assets/..%2f..%2f..%2fsecret.txt',
      '/dashboard/index.html',
      '/dashboard/api/unknown',
      '/dashboards',
    ])('has nothing at %s', async (path) => {
      build();
      const response = await fetch(url + path);
      expect(response.status).toBe(404);
      expect(await response.text()).not.toMatch(/hush|Here/);
    });

    test('says what to do while it is not built, and is there once it is', async () => {
      const missing = await fetch(`${url}/dashboard/webhooks`);
      expect(missing.status).toBe(404);
      expect(missing.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(await missing.text()).toContain('npm run dashboard:build');
      build();
      expect((await fetch(`${url}/dashboard/webhooks`)).status).toBe(200);
    });

    test('is only read', async () => {
      build();
      const head = await fetch(`${url}/dashboard`, { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([200, '']);
      const post = await fetch(`${url}/dashboard`, { method: 'POST' });
      expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET']);
    });
  });
});

test.each(['', '/', '/a', '/a/', '/webhooks/wh_1', '/webhooks/wh_1/attempts', '//evil', '/a//b'])(
  'the base of /dashboard%s leads to /dashboard/, behind a prefix too',
  (below) => {
    for (const prefix of ['', '/hooks', '/a/b/c']) {
      const address = `https://example.com${prefix}/dashboard${below}`;
      const base = new URL(baseOf(`/dashboard${below}`), address);
      expect(base.href).toBe(`https://example.com${prefix}/dashboard/`);
    }
  },
);

test('the base replaces one that the build has put in', () => {
  const page =
    '<!doctype html><html><head lang="en">\n<base href="/dashboard/" /><title>P</title></head></html>';
  expect(pageText(page, '/dashboard/a/b')).toBe(
    '<!doctype html><html><head lang="en"><base href="../"><title>P</title></head></html>',
  );
});

const LISTED = ['https://app.example.com'];

describe('a frame', () => {
  test.each([
    ['of an origin that is not listed', 'iframe', 'https://evil.example/page', LISTED, true],
    ['of a listed origin', 'iframe', 'https://app.example.com/', LISTED, false],
    [
      'of a listed origin with the port of its scheme',
      'iframe',
      'https://port.example/',
      ['https://port.example:443'],
      false,
    ],
    ['where none is listed', 'iframe', 'https://app.example.com/', [], true],
    ['where none is listed and the page is not told', 'embed', undefined, [], true],
    ['whose page is not told', 'iframe', undefined, LISTED, false],
    ['whose page is no URL', 'iframe', 'nonsense', LISTED, false],
  ])('%s: %s from %s with %j is refused: %s', (_what, destination, referrer, origins, refused) => {
    expect(isRefusedFrame({ destination, referrer }, origins)).toBe(refused);
  });

  test.each(['document', 'empty', undefined])('is not what %s asks for', (destination) => {
    const referrer = 'https://evil.example/';
    expect(isRefusedFrame({ destination, referrer }, [])).toBe(false);
  });

  test('that is refused is told of its origin alone, and never of what the referrer says besides', () => {
    const page = refusedFrame('https://evil.example/<script>alert(1)</script>?a="b"');
    expect(page).toContain('<strong>https://evil.example</strong>');
    expect(page).not.toContain('<script>');
    // A host may have these characters.
    expect(refusedFrame(`http://a&lt;b"'.example/`)).toContain(
      'http://a&amp;lt;b&quot;&#39;.example',
    );
    expect(refusedFrame('"><script>')).toContain('The page around this frame');
  });
});
