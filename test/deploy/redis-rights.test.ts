import { expect, test } from '@jest/globals';
import {
  REDIS_USERS,
  aclRulesOf,
  redisUserOf,
  usersFile,
} from '../../deploy/setup/redis-rights.ts';

const ON_A_SERVER = { prefix: 'hooks:', isCluster: false };

test.each(REDIS_USERS)(
  'the %s has keys and channels of the prefix and single commands only [security]',
  (user) => {
    const [reset, on, ...rules] = aclRulesOf(user, ON_A_SERVER);
    expect([reset, on]).toEqual(['reset', 'on']);
    const simple = /^(%[RW]~hooks:|&hooks:|\+)[a-z:-]+\*?$/;
    const selectors = rules.filter((rule) => !simple.test(rule));
    // Who only tells others is not told.
    const expected = user === 'dispatcher' ? ['(+publish &hooks:live-attempts)'] : [];
    expect(selectors).toEqual(expected);
  },
);

test('nobody has what only a cluster needs on a server [security]', () => {
  const rulesOf = (isCluster: boolean): string[] =>
    REDIS_USERS.flatMap((user) => aclRulesOf(user, { prefix: 'hooks:', isCluster }));
  expect(rulesOf(false)).not.toContain('+cluster|slots');
  expect(rulesOf(true)).toContain('+cluster|slots');
});

test('what the version before uses stays allowed while it may run', () => {
  expect(aclRulesOf('gateway', ON_A_SERVER)).toEqual(
    expect.arrayContaining(['%R~hooks:open-circuits', '%R~hooks:circuits-since', '+hgetall']),
  );
  const asDispatcher = ['%R~', '%W~'].map((right) => `${right}hooks:open-circuits`);
  expect(aclRulesOf('dispatcher', ON_A_SERVER)).toEqual(
    expect.arrayContaining([...asDispatcher, '%W~hooks:circuits-since', '+hsetnx']),
  );
});

test('the file has a user for each process, who cannot log in until a password is added', () => {
  const lines = usersFile(ON_A_SERVER).trim().split('\n');
  expect(lines.map((line) => line.split(' ')[1])).toEqual(REDIS_USERS.map(redisUserOf));
  for (const line of lines) expect(line).not.toMatch(/ (>|#|nopass)/);
});
