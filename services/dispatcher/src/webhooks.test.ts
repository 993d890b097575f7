import { beforeEach, describe, expect, it } from '@jest/globals';
import { type Hold, holdSourceOf } from '@posthorn/domain/waiting.ts';
import { keyPairSignerOf } from '@posthorn/domain/request/signature.ts';
import type { FoundSigningKeys } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import type { FoundWebhook, UnopenedWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import { sampleDue } from '../../../test/support/samples/sample-record.ts';
import { sampleSigningKey } from '../../../test/support/samples/sample-signing-key.ts';
import { openedWebhook, unopenedWebhook } from '../../../test/support/samples/sample-webhook.ts';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { abortedAttempt } from './attempt/settled-attempt.ts';
import {
  changedSourceOf,
  createSigningKeyLoader,
  createWebhookLoader,
  type DisablingAttempt,
  type LoadSigner,
  type SigningKeyLoader,
} from './webhooks.ts';

describe('load webhook', () => {
  const good = openedWebhook(1);
  const problem = new SealedValueError('secret of wh_2 was changed or moved', 'k1');
  const bad: UnopenedWebhook = unopenedWebhook('wh_2', problem);

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
  let holds = new Map<string, Hold>();
  let disabled: DisablingAttempt[] = [];
  let publishing: () => Promise<void>;

  beforeEach(() => {
    [asked, logged, disabled] = [[], [], []];
    holds = new Map();
    publishing = () => Promise.resolve();
  });

  function loaderOf(
    stored: FoundWebhook[],
    loadSigner: LoadSigner = () => Promise.resolve({ kind: 'unopened', problem }),
  ) {
    const log = (...line: unknown[]) => void logged.push(line);
    const logger = { error: log, warn: log };
    const findMany = (ids: readonly string[]) => {
      asked.push([...ids]);
      return Promise.resolve(stored.filter(({ id }) => ids.includes(id)));
    };
    return createWebhookLoader({
      webhooks: { findMany, holdsOfApps: () => Promise.resolve(holds) },
      loadSigner,
      logger,
      cacheBytes: 1_000_000,
      keepTrying,
      publishDisabling(made) {
        disabled.push(made);
        return publishing();
      },
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
      expect(unopened).toEqual({ ...bad, appHeld: null });
      expect(await loader.load(bad.id)).toBe(unopened);
      const reason = 'secret of wh_2 was changed or moved';
      expect(logged).toEqual([
        [
          { webhookId: 'wh_2', companyId: 'comp_a', keyId: 'k1', reason },
          'webhook cannot be opened',
        ],
      ]);
    });

    it('reads the hold of its app with it, and again when that has changed', async () => {
      const hold = { sinceMs: 1, untilMs: null, reason: null, by: 'key_1' };
      const loader = loaderOf([good]);
      expect(await loader.load(good.id)).toMatchObject({ appHeld: null });
      holds.set('app_1', hold);
      expect(await loader.load(good.id)).toMatchObject({ appHeld: null });
      loader.cache.forget(holdSourceOf('app_1'));
      expect(await loader.load(good.id)).toMatchObject({ appHeld: hold });
    });

    it('keeps the webhooks of an app when something else of it than its hold has changed', () => {
      const app = { collection: 'apps', id: 'app_1' };
      expect(changedSourceOf({ ...app, fields: ['name', 'metadata', 'updatedAt'] })).toBeNull();
      for (const fields of [['updatedAt', 'held'], ['held.untilMs'], null]) {
        expect(changedSourceOf({ ...app, fields })).toBe(holdSourceOf('app_1'));
      }
      const changed = { collection: 'webhooks', id: good.id, fields: ['name'] };
      expect(changedSourceOf(changed)).toBe(good.id);
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
      const { id, companyId, appId, cancelBeforeMs, eventTypes, maxAttempts, held, ordering } =
        asymmetric;
      const { filter, projectId } = asymmetric;
      const listed = { id, companyId, projectId, appId, cancelBeforeMs, eventTypes, filter };
      const state = { ...listed, maxAttempts, held, ordering };
      const stops = { disabled: asymmetric.disabled, appHeld: null };
      const expected = { kind: 'unopened', ...state, ...stops, problem };
      expect(await loader.load(id)).toEqual(expected);
    });
  });

  describe('a webhook that its endpoint disables', () => {
    const isDisabled = async (
      loader: ReturnType<typeof loaderOf>,
    ): Promise<boolean | undefined> => {
      const found = await loader.load(good.id);
      return found?.kind === 'opened' ? found.webhook.disabled : undefined;
    };

    const due = sampleDue();
    const attempt = abortedAttempt(due, 1);
    const gone = { due, attempt, webhook: good, reason: 'gone' } as const;

    it('is disabled from that moment on, also for a load that began before', async () => {
      const loader = loaderOf([good]);
      publishing = () => new Promise(() => undefined);
      const before = isDisabled(loader);
      void loader.disable(gone);
      expect([await before, await isDisabled(loader)]).toEqual([true, true]);
    });

    it('is published once for all attempts that were under way', async () => {
      const loader = loaderOf([good]);
      await Promise.all([loader.disable(gone), loader.disable(gone)]);
      expect(disabled).toEqual([gone]);
    });

    it('is enabled again by a change of the client', async () => {
      const stored: FoundWebhook[] = [good];
      const loader = loaderOf(stored);
      await loader.disable(gone);
      expect(await isDisabled(loader)).toBe(true);
      const webhook = { ...good, updatedAtMs: good.updatedAtMs + 1 };
      stored[0] = webhook;
      loader.cache.forget(good.id);
      expect(await isDisabled(loader)).toBe(false);
      await loader.disable({ ...gone, webhook });
      expect(await isDisabled(loader)).toBe(true);
    });

    it('is published by the next attempt when the process could not publish it', async () => {
      const loader = loaderOf([good]);
      publishing = () => Promise.reject(new Error('stopped'));
      await expect(loader.disable(gone)).rejects.toThrow('stopped');
      publishing = () => Promise.resolve();
      await loader.disable(gone);
      expect(disabled).toHaveLength(2);
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
