import { beforeEach, describe, expect, it } from '@jest/globals';
import { keyPairSignerOf } from '@posthorn/domain/request/signature.ts';
import type { FoundSigningKeys } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import type { FoundWebhook, UnopenedWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import { sampleSigningKey } from '../../../test/support/samples/sample-signing-key.ts';
import { openedWebhook } from '../../../test/support/samples/sample-webhook.ts';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import {
  createSigningKeyLoader,
  createWebhookLoader,
  type LoadSigner,
  type SigningKeyLoader,
} from './webhooks.ts';

describe('load webhook', () => {
  const good = openedWebhook(1);
  const problem = new SealedValueError('secret of wh_2 was changed or moved', 'k1');
  const bad: UnopenedWebhook = {
    kind: 'unopened',
    id: 'wh_2',
    companyId: 'comp_a',
    appId: 'app_1',
    disabled: false,
    eventTypes: [],
    problem,
  };

  const asymmetric = openedWebhook(3, {
    authMethod: {
      method: 'hmac',
      hmacHeader: 'X-Signature',
      hmacSecret: 'hush',
      signatureAlgorithm: 'ed25519',
    },
  });

  let asked: string[][] = [];
  let logged: unknown[][] = [];

  beforeEach(() => {
    [asked, logged] = [[], []];
  });

  function loaderOf(
    stored: FoundWebhook[],
    loadSigner: LoadSigner = () => Promise.resolve({ kind: 'unopened', problem }),
  ) {
    const logger = { error: (...line: unknown[]) => void logged.push(line) };
    const findMany = (ids: readonly string[]) => {
      asked.push([...ids]);
      return Promise.resolve(stored.filter(({ id }) => ids.includes(id)));
    };
    return createWebhookLoader({
      webhooks: { findMany },
      loadSigner,
      logger,
      cacheBytes: 1_000_000,
      keepTrying,
      areChangesFollowed: () => false,
    });
  }

  describe('the loader of webhooks', () => {
    it('prepares a stored webhook, and resolves with null for a deleted one', async () => {
      const loader = loaderOf([good]);
      const [found, gone] = await Promise.all([loader.load(good.id), loader.load('wh_gone')]);
      expect(found).toMatchObject({ webhook: good, origin: 'https://example.com', path: '/hook' });
      expect(gone).toBeNull();
      expect(asked).toEqual([[good.id, 'wh_gone']]);
    });

    it('returns a webhook whose secrets cannot be opened, logs it once, and loads the others', async () => {
      const loader = loaderOf([good, bad]);
      const [found, unopened] = await Promise.all([loader.load(good.id), loader.load(bad.id)]);
      expect(found).toMatchObject({ webhook: good });
      expect(unopened).toBe(bad);
      expect(await loader.load(bad.id)).toBe(bad);
      const reason = 'secret of wh_2 was changed or moved';
      expect(logged).toEqual([
        [
          { webhookId: 'wh_2', companyId: 'comp_a', keyId: 'k1', reason },
          'webhook cannot be opened',
        ],
      ]);
    });

    it('reads such a webhook again after it was told to forget it', async () => {
      const stored: FoundWebhook[] = [bad];
      const loader = loaderOf(stored);
      await loader.load(bad.id);
      stored[0] = { ...good, id: bad.id };
      loader.cache.forget(bad.id);
      expect(await loader.load(bad.id)).toMatchObject({ webhook: { id: bad.id } });
    });

    it('gives a webhook with ed25519 the keys of its company', async () => {
      const signer = keyPairSignerOf({ current: sampleSigningKey(1), previous: null });
      const companies: string[] = [];
      const loader = loaderOf([good, asymmetric], (companyId) => {
        companies.push(companyId);
        return Promise.resolve({ kind: 'opened', signer });
      });
      expect(await loader.load(asymmetric.id)).toMatchObject({ kind: 'opened', signer });
      expect(await loader.load(good.id)).toMatchObject({ signer: { kind: 'secret' } });
      expect(companies).toEqual([asymmetric.companyId]);
    });

    it('returns such a webhook as one that cannot be opened while those keys cannot', async () => {
      const loader = loaderOf([asymmetric]);
      const { id, companyId, appId, disabled, eventTypes } = asymmetric;
      const expected = { kind: 'unopened', id, companyId, appId, disabled, eventTypes, problem };
      expect(await loader.load(id)).toEqual(expected);
    });
  });
});

describe('load signing keys', () => {
  const keysOf = (n: number): FoundSigningKeys => ({
    kind: 'opened',
    keys: { current: sampleSigningKey(n), previous: null },
  });

  let logged: unknown[][];
  let stored: Map<string, FoundSigningKeys>;
  let asked: string[][];
  let loader: SigningKeyLoader;

  beforeEach(() => {
    [stored, asked, logged] = [new Map([['comp_a', keysOf(1)]]), [], []];
    loader = createSigningKeyLoader({
      signingKeys: {
        findMany(companyIds) {
          asked.push([...companyIds]);
          return Promise.resolve(stored);
        },
      },
      logger: { error: (...line: unknown[]) => void logged.push(line) },
      keepTrying,
      areChangesFollowed: () => false,
      nowMs: () => 0,
    });
  });

  describe('the loader of signing keys', () => {
    it('makes the signer of a company once, also for many webhooks', async () => {
      const [one, two] = await Promise.all([loader.load('comp_a'), loader.load('comp_a')]);
      const again = await loader.load('comp_a');
      expect(one.kind === 'opened' && one.signer.standard.asymmetricKeyType).toBe('ed25519');
      expect([two === one, again === one]).toEqual([true, true]);
      expect(asked).toEqual([['comp_a']]);
      expect(loader.cache.usedSize()).toBeGreaterThan(0);
    });

    it('reads the keys again after a rotation was announced', async () => {
      await loader.load('comp_a');
      const rotated = keysOf(2);
      stored.set('comp_a', rotated);
      loader.cache.forget('comp_a');
      const found = await loader.load('comp_a');
      if (rotated.kind !== 'opened' || found.kind !== 'opened') throw new Error('not opened');
      const { standard } = keyPairSignerOf(rotated.keys);
      expect(found.signer.standard.equals(standard)).toBe(true);
    });

    it('returns a problem for a company without keys, and asks again the next time', async () => {
      const found = await loader.load('comp_b');
      const reason = 'the company has no signing keys';
      expect(found).toMatchObject({ problem: { message: reason } });
      expect(logged).toMatchObject([
        [{ companyId: 'comp_b', reason }, 'signing keys of a company cannot be opened'],
      ]);
      stored.set('comp_b', keysOf(1));
      expect((await loader.load('comp_b')).kind).toBe('opened');
    });
  });
});
