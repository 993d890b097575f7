import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from '@jest/globals';
import { publicJwkOf, type SigningKey } from '@posthorn/domain/request/signature.ts';
import type { FoundSigningKeys } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import express from 'express';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { sampleSigningKey } from '../../../../test/support/samples/sample-signing-key.ts';
import { sendError } from '../http/send-error.ts';
import { publicKeysPage } from '../routes/signing-keys.ts';
import { type CompanyKeys, createCompanyKeys, createFindPublicKeys } from './signing-keys.ts';

describe('company keys', () => {
  const COMPANY = 'comp_a';

  let stored: Map<number, SigningKey>;
  let retired: [number, number][];
  let invalidated: unknown[];
  /** What other processes store right before the next insert. */
  let others: SigningKey[];
  let nowMs: number;
  let keys: CompanyKeys;

  beforeEach(() => {
    stored = new Map();
    [retired, invalidated, others, nowMs] = [[], [], [], 1_000];
    keys = createCompanyKeys({
      store: {
        find: () => Promise.reject(new Error('not called')),
        newestNumber: () => Promise.resolve(Math.max(0, ...stored.keys())),
        insert(key) {
          const other = others.shift();
          if (other) stored.set(other.number, other);
          if (stored.has(key.number)) return Promise.resolve(false);
          stored.set(key.number, key);
          return Promise.resolve(true);
        },
        retire: (_company, number, atMs) => Promise.resolve(void retired.push([number, atMs])),
      },
      newId: countingIds(),
      nowMs: () => nowMs,
      invalidate: (each) => Promise.resolve(void invalidated.push(each)),
    });
  });

  const rotate = (graceSeconds: number) => keys.rotate(COMPANY, { id: 'skey_new', graceSeconds });

  const elsewhere = (number: number): SigningKey => ({
    id: `skey_elsewhere-${number}`,
    companyId: COMPANY,
    number,
    privateKey: 'd',
    publicKey: 'x',
    createdAtMs: 0,
    previousUntilMs: null,
  });

  describe('the first key of a company', () => {
    test('is made once', async () => {
      await keys.ensure(COMPANY);
      const first = stored.get(1);
      expect(first).toMatchObject({
        companyId: COMPANY,
        createdAtMs: 1_000,
        previousUntilMs: null,
      });
      await keys.ensure(COMPANY);
      expect([...stored.values()]).toEqual([first]);
    });

    test('is that of the process that was first', async () => {
      others = [elsewhere(1)];
      await keys.ensure(COMPANY);
      expect([...stored.values()]).toEqual([elsewhere(1)]);
    });

    test('is made by a rotation too, without a grace', async () => {
      const made = await rotate(60);
      expect(made).toMatchObject({ number: 1, previousUntilMs: null });
      expect(retired).toEqual([]);
    });
  });

  describe('a rotation', () => {
    test('makes another key beside the one before, for the grace, and announces it', async () => {
      await keys.ensure(COMPANY);
      const made = await rotate(60);
      expect(made).toMatchObject({ id: 'skey_new', number: 2, previousUntilMs: 61_000 });
      expect(made.publicKey).not.toBe(stored.get(1)?.publicKey);
      expect(stored.get(2)).toBe(made);
      expect(retired).toEqual([[1, 61_000]]);
      expect(invalidated).toEqual([{ companyId: COMPANY, id: COMPANY }]);
    });

    test('without a grace ends the one before at once', async () => {
      await keys.ensure(COMPANY);
      expect(await rotate(0)).toMatchObject({ previousUntilMs: 1_000 });
    });

    test('comes after one that another process makes at the same moment', async () => {
      stored.set(1, elsewhere(1));
      others = [elsewhere(2), elsewhere(3)];
      expect(await rotate(60)).toMatchObject({ number: 4 });
      expect(retired).toEqual([[3, 61_000]]);
    });

    test('is refused while others keep rotating', async () => {
      others = Array.from({ length: 10 }, (_, n) => elsewhere(n + 1));
      await expect(rotate(60)).rejects.toMatchObject({ status: 503 });
    });
  });
});

describe('public keys page', () => {
  const COMPANY = 'comp_01kdyx3m9e7r8s5tqv2wzcbn4a';
  const STRANGER = 'comp_01kdyx3m9e7r8s5tqv2wzcbn4b';
  const [before, current] = [sampleSigningKey(1), sampleSigningKey(2)];
  const silent = { warn: () => undefined, error: () => undefined };

  let stored: Map<string, FoundSigningKeys>;
  let asked: string[][];
  let server: Server;
  let url: string;

  beforeAll(async () => {
    const store = {
      findMany(ids: readonly string[]) {
        asked.push([...ids]);
        return Promise.resolve(stored);
      },
    };
    const findPublicKeys = createFindPublicKeys(store, () => 0);
    const deadlines = { within: <T>(_response: unknown, step: Promise<T>) => step };
    const app = express().use(publicKeysPage({ findPublicKeys, deadlines }));
    app.use(sendError(silent as unknown as Parameters<typeof sendError>[0]));
    server = createServer(app);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/.well-known/webhooks-keys`;
  });

  beforeEach(() => {
    stored = new Map();
    asked = [];
  });

  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const keysOf = async (companyId: string): Promise<unknown> =>
    (await fetch(`${url}/${companyId}`)).json();

  describe('the public keys of a company [security]', () => {
    it('are a JWK Set that may be kept for five minutes, the newest key first', async () => {
      const keys = { current, previous: { key: before, expiresAtMs: 9_000 } };
      stored.set(COMPANY, { kind: 'opened', keys });
      const response = await fetch(`${url}/${COMPANY}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toMatch(/^application\/jwk-set\+json/);
      expect(response.headers.get('cache-control')).toBe('public, max-age=300');
      const text = await response.text();
      expect(JSON.parse(text)).toEqual({ keys: [publicJwkOf(current), publicJwkOf(before)] });
      for (const { privateKey } of [before, current]) expect(text).not.toContain(privateKey);
    });

    it('are an empty set for an unknown company as for one without keys, and any other text', async () => {
      expect(await keysOf(STRANGER)).toEqual({ keys: [] });
      expect(asked).toEqual([[STRANGER]]);
      for (const text of [
        'x',
        'app_01kdyx3m9e7r8s5tqv2wzcbn4a',
        `${COMPANY}x`,
        '%7B%22$gt%22%7D',
      ]) {
        expect(await keysOf(text)).toEqual({ keys: [] });
      }
      expect(asked).toHaveLength(1);
    });

    it('are looked up in batches: a thousand may wait, and no further request', async () => {
      const find = createFindPublicKeys({ findMany: () => Promise.resolve(new Map()) }, () => 0);
      const found = Array.from({ length: 1_001 }, () => find(COMPANY));
      await expect(found[1_000]).rejects.toMatchObject({ status: 503 });
      expect(await Promise.all(found.slice(0, 1_000))).toEqual(Array(1_000).fill(null));
      expect(await find(COMPANY)).toBeNull();
    });

    it('are not shown when one cannot be opened, and no reason is', async () => {
      const problem = new SealedValueError('hush', 'k1');
      stored.set(COMPANY, { kind: 'unopened', problem });
      const response = await fetch(`${url}/${COMPANY}`);
      expect([response.status, response.headers.get('cache-control')]).toEqual([500, null]);
      expect(await response.text()).not.toContain('hush');
    });

    it('are read with GET and HEAD only', async () => {
      expect((await fetch(`${url}/${COMPANY}`, { method: 'HEAD' })).status).toBe(200);
      const post = await fetch(`${url}/${COMPANY}`, { method: 'POST' });
      expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET']);
    });
  });
});
