import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type {
  KnownPublisher,
  PublisherStore,
} from '@posthorn/platform/mongo/messages/publishers.ts';

export interface OpenPublishers {
  publishers: PublisherStore;
  close: () => Promise<void>;
}

const HOUR_MS = 3_600_000;

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

    async function listed(id: string): Promise<KnownPublisher> {
      const found = (await publishers.list()).find((each) => each.id === id);
      if (!found) throw new Error(`${id} is not listed`);
      return found;
    }

    const isListed = async (id: string): Promise<boolean> =>
      (await publishers.list()).some((each) => each.id === id);

    it('is listed with its watermark from its registration on', async () => {
      await publishers.register('gw_a', 'msg_1');
      expect(await listed('gw_a')).toEqual({
        id: 'gw_a',
        watermark: 'msg_1',
        sweptTo: '',
        isTakenOver: false,
        heartbeatAtMs: expect.any(Number),
        silentMs: expect.any(Number),
        stuckMs: null,
      });
    });

    it('tells with its heartbeat how far it is and how long its oldest message has waited', async () => {
      expect(await publishers.heartbeat('gw_a', 'msg_2', 2 * HOUR_MS)).toBe(true);
      const { watermark, stuckMs, silentMs } = await listed('gw_a');
      expect(watermark).toBe('msg_2');
      expect(stuckMs).toBeGreaterThanOrEqual(2 * HOUR_MS);
      expect(silentMs).toBeLessThan(HOUR_MS);
      await publishers.heartbeat('gw_a', 'msg_3', null);
      expect(await listed('gw_a')).toMatchObject({ watermark: 'msg_3', stuckMs: null });
    });

    it('tells how far it is, and nothing when it is unknown', async () => {
      await publishers.register('gw_far', 'msg_4');
      expect(await publishers.progressOf(['gw_far', 'gw_unknown'])).toEqual(
        new Map([['gw_far', { watermark: 'msg_4', sweptTo: '' }]]),
      );
      await publishers.markSwept('gw_far', 'msg_6');
      expect((await publishers.progressOf(['gw_far'])).get('gw_far')?.sweptTo).toBe('msg_6');
    });

    it('is not made by a heartbeat', async () => {
      expect(await publishers.heartbeat('gw_unknown', 'msg_1', null)).toBe(false);
      expect(await isListed('gw_unknown')).toBe(false);
    });

    it('is not taken over when it has sent a heartbeat since it was listed', async () => {
      const before = { ...(await listed('gw_a')), heartbeatAtMs: 1 };
      expect(await publishers.takeOver(before, 'heartbeat')).toBe(false);
      expect(await listed('gw_a')).toMatchObject({ isTakenOver: false });
    });

    it('is not taken over when it has raised its watermark since it was listed', async () => {
      const before = { ...(await listed('gw_a')), watermark: 'msg_2' };
      expect(await publishers.takeOver(before, 'watermark')).toBe(false);
      expect(await listed('gw_a')).toMatchObject({ isTakenOver: false });
    });

    it.each(['heartbeat', 'watermark'] as const)(
      'is taken over once when its %s is unchanged, and sends no heartbeat any more',
      async (unchanged) => {
        const id = `gw_${unchanged}`;
        await publishers.register(id, 'msg_1');
        expect(await publishers.takeOver(await listed(id), unchanged)).toBe(true);
        expect(await publishers.takeOver(await listed(id), unchanged)).toBe(false);
        const { heartbeatAtMs } = await listed(id);
        expect(await publishers.heartbeat(id, 'msg_9', null)).toBe(false);
        expect(await listed(id)).toMatchObject({
          watermark: 'msg_1',
          isTakenOver: true,
          heartbeatAtMs,
        });
      },
    );

    it('has the progress of the sweep', async () => {
      await publishers.markSwept('gw_a', 'msg_7');
      await publishers.markSwept('gw_a', 'msg_4');
      expect(await listed('gw_a')).toMatchObject({ watermark: 'msg_3', sweptTo: 'msg_7' });
    });

    it('is handed over by its gateway, and keeps the progress of the sweep', async () => {
      await publishers.handOver('gw_a', 'msg_8');
      expect(await listed('gw_a')).toMatchObject({
        isTakenOver: true,
        watermark: 'msg_8',
        sweptTo: 'msg_7',
      });
    });

    it('is forgotten only when it has been silent for long enough', async () => {
      await publishers.forget('gw_a', HOUR_MS);
      expect(await isListed('gw_a')).toBe(true);
      await publishers.forget('gw_a', -HOUR_MS);
      expect(await isListed('gw_a')).toBe(false);
    });

    it('is known again when its gateway hands it over after it was forgotten', async () => {
      await publishers.handOver('gw_a', 'msg_8');
      expect(await listed('gw_a')).toMatchObject({ isTakenOver: true, watermark: 'msg_8' });
    });

    it('is not made by the progress of a sweep', async () => {
      await publishers.markSwept('gw_unknown', 'msg_1');
      await publishers.forget('gw_unknown', HOUR_MS);
      expect(await isListed('gw_unknown')).toBe(false);
    });
  });
}
