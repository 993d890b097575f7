import { expect, it } from '@jest/globals';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { createPayloadLoader } from './load-payload.ts';

it('loads a payload for the company of its message only', async () => {
  const asked: string[] = [];
  const payloadsOf = (ids: readonly string[]) => {
    asked.push(...ids);
    return Promise.resolve(new Map([['msg_1', { companyId: 'comp_a', payload: '{"n":1}' }]]));
  };
  const { load } = createPayloadLoader({ payloadsOf }, 1_000_000, keepTrying);
  expect(String(await load('comp_a', 'msg_1'))).toBe('{"n":1}');
  expect(await load('comp_b', 'msg_1')).toBeNull();
  expect(await load('comp_a', 'msg_2')).toBeNull();
  expect(asked).toEqual(['msg_1', 'msg_2']);
});
