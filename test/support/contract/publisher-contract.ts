import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { PublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';

export interface OpenPublishers {
  publishers: PublisherStore;
  close: () => Promise<void>;
}

const HOUR_MS = 3_600_000;
const NEVER_STALE = { staleMs: HOUR_MS, behindMs: HOUR_MS };
/** A heartbeat counts as stale unless it comes from the future. */
const ALWAYS_STALE = { staleMs: -HOUR_MS, behindMs: HOUR_MS };

/** What every PublisherStore does. */
export function publisherContract(open: () => Promise<OpenPublishers>): void {
  describe('a publisher', () => {
    let opened: OpenPublishers;
    let publishers: PublisherStore;

    beforeAll(async () => {
      opened = await open();
      ({ publishers } = opened);
    });

    afterAll(() => opened.close());

    async function idsToSweep(limits: typeof NEVER_STALE): Promise<string[]> {
      return (await publishers.findToSweep(limits)).map(({ id }) => id).sort();
    }

    it('is swept when its heartbeat is stale', async () => {
      await publishers.heartbeat('gw_a', 'msg_1', null);
      expect(await idsToSweep(NEVER_STALE)).toEqual([]);
      expect(await idsToSweep(ALWAYS_STALE)).toEqual(['gw_a']);
    });

    it('is swept when it is alive and its oldest message has waited too long', async () => {
      await publishers.heartbeat('gw_b', 'msg_1', 2 * HOUR_MS);
      expect(await idsToSweep(NEVER_STALE)).toEqual(['gw_b']);
      await publishers.heartbeat('gw_b', 'msg_2', null);
      expect(await idsToSweep(NEVER_STALE)).toEqual([]);
    });

    it('has its own watermark and the progress of the sweep', async () => {
      const first = { id: 'gw_a', watermark: 'msg_1', sweptTo: '' };
      expect(await publishers.findToSweep(ALWAYS_STALE)).toContainEqual(first);
      await publishers.markSwept('gw_a', 'msg_7');
      await publishers.heartbeat('gw_a', 'msg_3', null);
      const swept = { id: 'gw_a', watermark: 'msg_3', sweptTo: 'msg_7' };
      expect(await publishers.findToSweep(ALWAYS_STALE)).toContainEqual(swept);
    });

    it('is forgotten only when it has been silent for long enough', async () => {
      await publishers.forget('gw_a', HOUR_MS);
      expect(await idsToSweep(ALWAYS_STALE)).toContain('gw_a');
      await publishers.forget('gw_a', -HOUR_MS);
      expect(await idsToSweep(ALWAYS_STALE)).not.toContain('gw_a');
    });

    it('is not made by the progress of a sweep', async () => {
      await publishers.markSwept('gw_unknown', 'msg_1');
      await publishers.forget('gw_unknown', HOUR_MS);
      expect(await idsToSweep(ALWAYS_STALE)).not.toContain('gw_unknown');
    });
  });
}
