import { beforeAll, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createLinkStore, hashOfToken, type Link, type LinkStore, newLinkToken } from './links.ts';

const NOW_MS = Date.parse('2026-11-24T06:00:00Z');
const LINK: Link = { companyId: 'comp_a', expiresAtMs: NOW_MS + 1_000, portal: null };

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let store: LinkStore;

beforeAll(() => {
  store = createLinkStore(database.db);
});

async function insertLink(): Promise<string> {
  const token = newLinkToken();
  await store.insert(token, LINK, NOW_MS);
  return token;
}

describe('a link', () => {
  it('may be used once, however many try at the same time', async () => {
    const token = await insertLink();
    expect(await store.find('signIn', token, NOW_MS)).toEqual({ kind: 'link', link: LINK });
    const uses = await Promise.all(
      Array.from({ length: 10 }, () => store.use('signIn', token, NOW_MS)),
    );
    expect(uses.filter((use) => use.kind === 'link')).toEqual([{ kind: 'link', link: LINK }]);
    expect(uses.filter((use) => use.kind === 'refused' && use.refusal === 'used')).toHaveLength(9);
    expect(await store.find('signIn', token, NOW_MS)).toEqual({ kind: 'refused', refusal: 'used' });
  });

  it('is refused at its end', async () => {
    const token = await insertLink();
    for (const refused of [store.find, store.use]) {
      expect(await refused('signIn', token, NOW_MS + 1_000)).toEqual({
        kind: 'refused',
        refusal: 'expired',
      });
    }
    expect(await store.use('signIn', token, NOW_MS + 999)).toEqual({ kind: 'link', link: LINK });
  });

  it.each([newLinkToken(), '', 'x', `${newLinkToken()}x`])('is unknown: %s', async (token) => {
    await insertLink();
    expect(await store.use('signIn', token, NOW_MS)).toEqual({
      kind: 'refused',
      refusal: 'unknown',
    });
  });

  it('opens only what it is for', async () => {
    const token = await insertLink();
    expect(await store.use('portal', token, NOW_MS)).toEqual({
      kind: 'refused',
      refusal: 'unknown',
    });
    expect(await store.themeOf(hashOfToken(token))).toBeNull();
    const theme = { name: 'Acme', colorScheme: 'dark' as const };
    const grant = { linkId: 'plnk_1', appId: 'app_1', keyHash: 'hash', theme };
    const portal = { ...grant, capabilities: ['view' as const] };
    const other = newLinkToken();
    await store.insert(other, { ...LINK, portal }, NOW_MS);
    expect(await store.use('signIn', other, NOW_MS)).toEqual({
      kind: 'refused',
      refusal: 'unknown',
    });
    expect(await store.use('portal', other, NOW_MS)).toEqual({
      kind: 'link',
      link: { ...LINK, portal },
    });
    expect(await store.themeOf(hashOfToken(other))).toEqual(theme);
  });

  it('of the portal opens no more once it is revoked, and says so', async () => {
    const revoked = { companyId: 'comp_a', linkId: 'plnk_2', appId: null };
    const token = newLinkToken();
    const grant = { linkId: 'plnk_2', appId: 'app_1', keyHash: 'hash', theme: {} };
    const portal = { ...grant, capabilities: ['view' as const] };
    await store.insert(token, { ...LINK, portal }, NOW_MS);
    for (const other of [{ companyId: 'comp_b' }, { linkId: 'plnk_3' }, { appId: 'app_2' }]) {
      expect(await store.revoke({ ...revoked, ...other }, NOW_MS)).toBeNull();
    }
    expect(await store.isRevoked(hashOfToken(token))).toBe(false);
    expect(await store.revoke({ ...revoked, appId: 'app_1' }, NOW_MS)).toEqual(portal);
    expect(await store.revoke(revoked, NOW_MS)).toBeNull();
    for (const opened of [store.find, store.use]) {
      expect(await opened('portal', token, NOW_MS)).toEqual({
        kind: 'refused',
        refusal: 'revoked',
      });
    }
    expect(await store.isRevoked(hashOfToken(token))).toBe(true);
    expect(await store.isRevoked(hashOfToken(newLinkToken()))).toBe(true);
  });

  it('of the portal is listed with its app until it is revoked or expires', async () => {
    const companyId = 'comp_listed';
    const insert = async (linkId: string, appId: string, lastsMs: number) => {
      const grant = { linkId, appId, keyHash: 'hash', theme: {}, capabilities: ['view' as const] };
      const token = newLinkToken();
      const link = { companyId, expiresAtMs: NOW_MS + lastsMs, portal: grant };
      await store.insert(token, link, NOW_MS);
      return token;
    };
    await insert('plnk_short', 'app_a', 1_000);
    const opened = await insert('plnk_long', 'app_a', 3_000);
    await insert('plnk_b', 'app_b', 2_000);
    await insert('plnk_gone', 'app_a', 4_000);
    await store.insert(newLinkToken(), { ...LINK, companyId }, NOW_MS);
    await store.use('portal', opened, NOW_MS + 500);
    await store.revoke({ companyId, linkId: 'plnk_gone', appId: null }, NOW_MS);
    const listed = async (appId: string | null, atMs = NOW_MS, page = { skip: 0, limit: 10 }) =>
      (await store.listLive({ companyId, appId, ...page }, atMs)).map((link) => [
        link.portal.linkId,
        link.openedAtMs,
      ]);
    const long = ['plnk_long', NOW_MS + 500];
    expect(await listed('app_a')).toEqual([long, ['plnk_short', null]]);
    expect(await listed('app_a', NOW_MS + 1_000)).toEqual([long]);
    expect(await listed(null)).toEqual([long, ['plnk_b', null], ['plnk_short', null]]);
    expect(await listed(null, NOW_MS, { skip: 1, limit: 1 })).toEqual([['plnk_b', null]]);
    const elsewhere = { companyId: 'comp_other', appId: null, skip: 0, limit: 10 };
    expect(await store.listLive(elsewhere, NOW_MS)).toEqual([]);
  });

  it('is stored without its token', async () => {
    const token = await insertLink();
    const stored = await collection(database.db, 'links').find({}).toArray();
    expect(JSON.stringify(stored)).not.toContain(token);
  });
});
