import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { createPublisherStore, type PublisherStore } from './publishers.ts';

const NEVER_STALE = { staleMs: 3_600_000, behindMs: 3_600_000 };
/** A heartbeat is stale when it is older than "one hour from now". */
const ALWAYS_STALE = { staleMs: -3_600_000, behindMs: 3_600_000 };

describe("a publisher's document", () => {
  let database: ScratchDatabase;
  let publishers: PublisherStore;

  beforeAll(async () => {
    database = await openScratchDatabase();
    publishers = createPublisherStore(database.db);
  });

  afterAll(() => database.drop());

  async function idsToSweep(limits: typeof NEVER_STALE): Promise<string[]> {
    return (await publishers.findToSweep(limits)).map(({ _id }) => _id).sort();
  }

  it('calls for the sweeper when the heartbeat is stale, by the clock of the database', async () => {
    await publishers.heartbeat('gw_a', 'msg_1', null);
    expect(await idsToSweep(NEVER_STALE)).toEqual([]);
    expect(await idsToSweep(ALWAYS_STALE)).toEqual(['gw_a']);
  });

  it('calls for the sweeper when the publisher lives and has been behind for long', async () => {
    await publishers.heartbeat('gw_b', 'msg_1', 7_200_000);
    expect(await idsToSweep(NEVER_STALE)).toEqual(['gw_b']);
    await publishers.heartbeat('gw_b', 'msg_2', null);
    expect(await idsToSweep(NEVER_STALE)).toEqual([]);
  });

  it('keeps how far the sweeper got apart from the watermark of the gateway', async () => {
    await publishers.markSwept('gw_a', 'msg_7');
    await publishers.heartbeat('gw_a', 'msg_3', null);
    const [swept] = await publishers.findToSweep(ALWAYS_STALE);
    expect(swept).toMatchObject({ _id: 'gw_a', watermark: 'msg_3', sweptTo: 'msg_7' });
  });

  it('is forgotten only when it has been silent for long enough', async () => {
    await publishers.forget('gw_a', 3_600_000);
    expect(await idsToSweep(ALWAYS_STALE)).toContain('gw_a');
    await publishers.forget('gw_a', -3_600_000);
    expect(await idsToSweep(ALWAYS_STALE)).not.toContain('gw_a');
  });
});
