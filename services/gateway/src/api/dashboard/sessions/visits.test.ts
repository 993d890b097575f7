import { beforeEach, describe, expect, test } from '@jest/globals';
import type { PortalSession } from './session.ts';
import { createVisits, type Visits } from './visits.ts';

const session: PortalSession = {
  kind: 'portal',
  companyId: 'comp_a',
  keyHash: 'key',
  endsAtMs: 1,
  appId: 'app_1',
  linkId: 'plnk_1',
  tokenHash: 'token',
  capabilities: ['view'],
};

let isRevoked: boolean;
let hasApp: boolean;
let reads: string[];
let visits: Visits;

beforeEach(() => {
  [isRevoked, hasApp, reads] = [false, true, []];
  visits = createVisits({
    links: {
      isRevoked: (tokenHash) => {
        reads.push(tokenHash);
        return Promise.resolve(isRevoked);
      },
    },
    hasApp: () => Promise.resolve(hasApp),
  });
});

const goesOn = async (): Promise<boolean> =>
  visits.assertGoesOn(session).then(
    () => true,
    () => false,
  );

describe('a visit', () => {
  test('ends when its link is revoked, at once where that was announced', async () => {
    expect(await goesOn()).toBe(true);
    isRevoked = true;
    visits.forget('plnk_1');
    expect(await goesOn()).toBe(false);
  });

  test('ends with its app', async () => {
    hasApp = false;
    await expect(visits.assertGoesOn(session)).rejects.toMatchObject({ status: 401 });
  });

  test('is looked up once for many requests, also when it has ended', async () => {
    await Promise.all([goesOn(), goesOn()]);
    await goesOn();
    expect(reads).toEqual(['token']);
    visits.forget('plnk_1');
    isRevoked = true;
    expect([await goesOn(), await goesOn()]).toEqual([false, false]);
    expect(reads).toHaveLength(2);
  });

  test('is nothing that a session of the dashboard needs', async () => {
    await visits.assertGoesOn({ kind: 'company', companyId: 'c', keyHash: 'k', endsAtMs: 1 });
    expect(reads).toEqual([]);
  });
});
