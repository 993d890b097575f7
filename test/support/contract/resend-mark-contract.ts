import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import type { MarkedDelivery, ResendMark } from '@posthorn/domain/resend.ts';
import type { ResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { sampleResend } from '../memory/memory-resends.ts';

export type AskedMarks = Pick<ResendMarks, 'ask' | 'read' | 'free'>;

export interface OpenResendMarks {
  marks: AskedMarks;
  /** Removes every delivery. */
  clear: () => Promise<void>;
  /** Adds a delivery with seven attempts. */
  add: (id: string, status: DeliveryStatus, companyId?: string) => Promise<void>;
  /** Settles the attempt that is asked for, as the dispatcher does. */
  settle: (id: string, isSuccess: boolean) => Promise<void>;
  close: () => Promise<void>;
}

const ID = 'dlv_1';
const SPAN = { page: [ID] };
const ONE = { page: [ID], afterId: ID, beforeId: ID };

/** What every ResendMarks does when a resend asks for attempts. */
export function resendMarkContract(open: () => Promise<OpenResendMarks>): void {
  let opened: OpenResendMarks;
  let marks: AskedMarks;

  beforeAll(async () => {
    opened = await open();
    ({ marks } = opened);
  });

  beforeEach(() => opened.clear());

  afterAll(() => opened.close());

  const ask = (resendId: string, kind: Partial<typeof ONE> = SPAN) =>
    marks.ask(sampleResend(resendId, kind));
  const read = async (id = ID): Promise<MarkedDelivery | undefined> =>
    (await marks.read('comp_a', [id]))[0];
  const markOf = async (): Promise<ResendMark | null | undefined> => (await read())?.mark;

  describe('a resend that asks for attempts', () => {
    it.each<[string, Partial<typeof ONE>, DeliveryStatus[]]>([
      ['of a span', SPAN, ['exhausted', 'cancelled']],
      ['of one delivery', ONE, ['exhausted', 'cancelled', 'delivered']],
    ])('%s marks deliveries by their status', async (_what, kind, wanted) => {
      for (const status of ['pending', 'delivered', 'exhausted', 'cancelled'] as const) {
        await opened.clear();
        await opened.add(ID, status);
        await ask('rsnd_1', kind);
        const mark = { resendId: 'rsnd_1', attemptNumber: 8, state: 'asked' };
        expect(await markOf()).toEqual(wanted.includes(status) ? mark : null);
      }
    });

    it('changes nothing when it asks again, also after the attempt', async () => {
      await opened.add(ID, 'exhausted');
      await ask('rsnd_1');
      const asked = await read();
      await ask('rsnd_1');
      expect(await read()).toEqual(asked);
      await opened.settle(ID, false);
      const settled = await read();
      expect(settled?.mark?.state).toBe('failed');
      await ask('rsnd_1');
      expect(await read()).toEqual(settled);
    });

    it('excludes another resend until the attempt is settled', async () => {
      await opened.add(ID, 'exhausted');
      await ask('rsnd_1');
      await ask('rsnd_2');
      expect(await markOf()).toMatchObject({ resendId: 'rsnd_1' });
      await opened.settle(ID, false);
      await ask('rsnd_2');
      expect(await markOf()).toEqual({ resendId: 'rsnd_2', attemptNumber: 9, state: 'asked' });
    });

    it('does not mark what another resend has delivered', async () => {
      await opened.add(ID, 'exhausted');
      await ask('rsnd_1');
      await opened.settle(ID, true);
      await ask('rsnd_2');
      expect(await read()).toMatchObject({
        status: 'delivered',
        mark: { resendId: 'rsnd_1', state: 'succeeded' },
      });
    });

    it('marks no delivery of another company, and none that is not in the page', async () => {
      await opened.add(ID, 'exhausted', 'comp_b');
      await opened.add('dlv_2', 'exhausted');
      await ask('rsnd_1');
      const [foreign] = await marks.read('comp_b', [ID]);
      expect([foreign?.mark, (await read('dlv_2'))?.mark]).toEqual([null, null]);
      expect(await marks.read('comp_a', [ID, 'dlv_2'])).toMatchObject([{ id: 'dlv_2' }]);
    });
  });

  describe('a mark that is freed', () => {
    it('lets another resend have the delivery', async () => {
      await opened.add(ID, 'exhausted');
      await ask('rsnd_1');
      await marks.free('comp_a', 'rsnd_1', [ID]);
      expect(await markOf()).toMatchObject({ resendId: 'rsnd_1', state: 'failed' });
      await ask('rsnd_2');
      expect(await markOf()).toMatchObject({ resendId: 'rsnd_2', state: 'asked' });
    });

    it('is one of this resend and company that is still asked for', async () => {
      await opened.add(ID, 'exhausted');
      await ask('rsnd_1');
      await marks.free('comp_a', 'rsnd_2', [ID]);
      await marks.free('comp_b', 'rsnd_1', [ID]);
      expect(await markOf()).toMatchObject({ state: 'asked' });
      await opened.settle(ID, true);
      await marks.free('comp_a', 'rsnd_1', [ID]);
      expect(await markOf()).toMatchObject({ state: 'succeeded' });
    });
  });
}
