import { describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS } from '../../../../test/support/stores/tested-redis.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { announce, listenForInvalidations, type Invalidation } from './invalidations.ts';

describe.each(REDIS_KINDS)('invalidations in %s', (_kind, open) => {
  const { REDIS_PREFIX: prefix } = createNamespace();
  const store = duringTests(open, ({ stop }) => stop());

  it('arrive at every listener', async () => {
    const heard: Invalidation[][] = [[], [], []];
    const change = { companyId: 'comp_1', id: 'wh_1' };
    for (const changes of heard) {
      listenForInvalidations(store.connect(), prefix, (change) => changes.push(change));
    }
    // Those that have not subscribed yet hear a later one.
    await eventually('what each hears', async () => {
      await announce(store.redis, prefix, [change]);
      return heard.every(({ length }) => length > 0);
    });
    expect(heard.map(([first]) => first)).toEqual([change, change, change]);
  });
});
