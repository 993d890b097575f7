import { expect, test } from '@jest/globals';
import { messageSearch, overviewSearch, webhookListSearch } from './search.ts';

test('an address keeps what a page knows', () => {
  expect(messageSearch({ status: 'pending', tag: 'vip', externalId: '17', open: 'msg_1' })).toEqual(
    {
      status: 'pending',
      tag: 'vip',
      externalId: '17',
      open: 'msg_1',
    },
  );
});

test('an address loses what no page knows, so that a page never fails over it', () => {
  expect(messageSearch({ status: 'lost', appId: 7, from: '' })).toEqual({});
  expect(overviewSearch({ range: '1y' })).toEqual({});
  expect(webhookListSearch({ page: 1, q: '' })).toEqual({});
});
