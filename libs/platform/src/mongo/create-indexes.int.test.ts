import { describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { openFreshDatabase } from '../../../../test/support/stores/scratch-database.ts';
import { collection } from './collections.ts';
import { createIndexes } from './create-indexes.ts';

describe('making indexes', () => {
  const database = duringTests(openFreshDatabase, ({ drop }) => drop());

  async function retentionSeconds(name: 'resends' | 'auditEvents'): Promise<unknown> {
    const indexes = await collection(database.db, name).indexes();
    return indexes.find(({ key }) => key.createdAt === 1)?.expireAfterSeconds;
  }

  it('changes nothing when it is repeated', async () => {
    await createIndexes(database.db, { days: 30, auditDays: 400 });
    expect(await retentionSeconds('resends')).toBe(30 * 86_400);
    expect(await retentionSeconds('auditEvents')).toBe(400 * 86_400);
  });

  it('changes the retention of existing collections', async () => {
    await createIndexes(database.db, { days: 7, auditDays: 90 });
    expect(await retentionSeconds('resends')).toBe(7 * 86_400);
    expect(await retentionSeconds('auditEvents')).toBe(90 * 86_400);
  });
});
