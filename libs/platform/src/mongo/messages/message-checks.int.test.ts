import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createIndexes } from '../create-indexes.ts';
import { createDeliveryStore } from '../deliveries/deliveries.ts';
import { createMessageChecks, type MessageChecks } from './message-checks.ts';
import { createMessageStore } from './messages.ts';

/** Not so old that the database would remove them. */
const FIRST_MS = Date.now() - 60_000;
const DAY_MS = 86_400_000;
const newId = countingIds(FIRST_MS);

describe('the check of the messages', () => {
  let database: ScratchDatabase;
  let checks: MessageChecks;
  const messages = Array.from({ length: 4 }, () =>
    sampleMessage(newId('msg'), { targets: ['wh_1', 'wh_2'], disabledTargets: ['wh_2'] }),
  );
  const ids = messages.map(({ id }) => id);

  beforeAll(async () => {
    database = await openScratchDatabase();
    checks = createMessageChecks(database.db);
    await createMessageStore(database.db).insertAll(messages);
  });

  beforeEach(() => collection(database.db, 'messageChecks').deleteMany({}));

  afterAll(() => database.drop());

  it('begins before the first message, by the clock of the database, and goes on where it was', async () => {
    const { nowMs, checkedTo } = await checks.begin();
    expect(checkedTo).toBe('');
    expect(Math.abs(nowMs - Date.now())).toBeLessThan(DAY_MS);
    await checks.noteChecked('msg_5');
    expect(await checks.begin()).toMatchObject({ checkedTo: 'msg_5' });
  });

  it('reads them in the order in which they were made, without their payloads', async () => {
    const [first, second] = await checks.pageOf({
      afterId: ids[0] ?? '',
      beforeMs: Date.now(),
      limit: 2,
    });
    expect(first).toMatchObject({
      id: ids[1],
      companyId: 'comp_a',
      appId: null,
      createdAtMs: FIRST_MS + 1,
      targets: ['wh_1', 'wh_2'],
      disabledTargets: ['wh_2'],
    });
    expect(first).not.toHaveProperty('payload', expect.anything());
    expect(second?.id).toBe(ids[2]);
  });

  it('leaves out what was made since', async () => {
    const page = await checks.pageOf({ afterId: '', beforeMs: FIRST_MS + 2, limit: 10 });
    expect(page.map(({ id }) => id)).toEqual(ids.slice(0, 2));
  });

  it('tells which deliveries are recorded', async () => {
    const [known = '', unknown = ''] = ids.map((id) => deliveryIdOf(id, 'wh_1'));
    await createDeliveryStore(database.db).insertAll([
      {
        id: known,
        messageId: ids[0] ?? '',
        webhookId: 'wh_1',
        companyId: 'comp_a',
        appId: null,
        status: 'pending',
        reason: null,
        attempt: null,
        nextAttemptAtMs: 1,
        createdAtMs: FIRST_MS,
        updatedAtMs: 1,
      },
    ]);
    expect(await checks.recordedAmong([known, unknown])).toEqual(new Set([known]));
  });

  it('knows how long deliveries are kept, also after a change', async () => {
    expect(await checks.retentionMs()).toBe(30 * DAY_MS);
    await createIndexes(database.db, 7);
    expect(await checks.retentionMs()).toBe(7 * DAY_MS);
  });
});
