import { expect, test } from '@jest/globals';
import { ApiError } from '../api-error.ts';
import { createSignIn } from './sign-in.ts';

const SOURCE = { address: '192.0.2.1', requestId: 'request-1' };
const fail = (): never => {
  throw new Error('not to be called');
};

test('no link is looked up for an address that has sent too many wrong ones', async () => {
  const looked: string[] = [];
  const signIn = createSignIn({
    authenticate: fail,
    links: {
      find: (_kind, token) => {
        looked.push(token);
        return Promise.resolve({ kind: 'refused', refusal: 'unknown' });
      },
      use: fail,
      revoke: fail,
    },
    companies: { insertKey: fail, linkKeyOf: fail, removeLinkKey: fail },
    peopleSignIn: { out: fail },
    areKeysOff: false,
    apps: { has: fail },
    invalidate: fail,
    recordRequest: fail,
    wrongKeys: {
      count: () => undefined,
      lookUp: () => Promise.reject(new ApiError('too_many_wrong_keys', 'wait')),
    },
    newId: () => 'key_1',
    nowMs: () => 0,
  });
  const refused = { status: 429 };
  await expect(signIn.byLink('a', SOURCE)).rejects.toMatchObject(refused);
  const opened = { token: 'b', companyId: null };
  await expect(signIn.toPortal(opened, SOURCE)).rejects.toMatchObject(refused);
  expect(looked).toEqual([]);
});
