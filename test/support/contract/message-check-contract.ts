import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { CheckSpan, MessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { countingIds, sampleMessage } from '../samples/sample-message.ts';

export interface OpenMessageChecks {
  checks: MessageChecks;
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  insert: (messages: readonly Message[]) => Promise<unknown>;
  /** Sets for how long deliveries are kept. */
  keepFor: (days: number) => Promise<void>;
  close: () => Promise<void>;
}

/** Recent, so that the database does not remove them. */
const FIRST_MS = Date.now() - 60_000;
const DAY_MS = 86_400_000;

/** What every MessageChecks does. */
export function messageCheckContract(open: () => Promise<OpenMessageChecks>): void {
  describe('the check of the messages', () => {
    const newId = countingIds(FIRST_MS);
    const messages = Array.from({ length: 4 }, () =>
      sampleMessage(newId('msg'), {
        targets: ['wh_1', 'wh_2'],
        disabledTargets: new Set(['wh_2']),
      }),
    );
    const ids = messages.map(({ id }) => id);
    let opened: OpenMessageChecks;
    let checks: MessageChecks;

    beforeAll(async () => {
      opened = await open();
      ({ checks } = opened);
      await opened.insert(messages);
    });

    afterAll(() => opened.close());

    const idsByPage = async (span: Partial<CheckSpan>): Promise<string[][]> => {
      const all = { afterId: '', beforeMs: Date.now(), maxMessages: 10, maxTargets: 100 };
      const pages: string[][] = [];
      for await (const page of checks.pagesOf({ ...all, ...span })) {
        pages.push(page.map(({ id }) => id));
      }
      return pages;
    };

    it('begins before the first message, and the next time where it ended', async () => {
      const { nowMs, checkedTo } = await checks.begin();
      expect(checkedTo).toBe('');
      expect(Math.abs(nowMs - Date.now())).toBeLessThan(DAY_MS);
      await checks.markChecked('msg_5');
      expect(await checks.begin()).toMatchObject({ checkedTo: 'msg_5' });
    });

    it('tells before when all messages are checked', async () => {
      const [first, second] = ids;
      await checks.markChecked(second ?? '');
      expect(await checks.checkedToMs()).toBe(FIRST_MS + 1);
      await checks.markComplete(FIRST_MS + 5_000);
      await checks.markChecked(first ?? '');
      expect(await checks.checkedToMs()).toBe(FIRST_MS + 5_000);
      expect(await checks.begin()).toMatchObject({ checkedTo: first });
    });

    it('has checked nothing at first', async () => {
      const { checks: others, close } = await open();
      expect(await others.checkedToMs()).toBeNull();
      await close();
    });

    it('reads messages in the order of their ids', async () => {
      expect(await idsByPage({ afterId: ids[0] ?? '' })).toEqual([ids.slice(1)]);
    });

    it('reads what the check needs of a message', async () => {
      const span = { afterId: ids[0] ?? '', beforeMs: Date.now(), maxMessages: 1, maxTargets: 9 };
      for await (const page of checks.pagesOf(span)) {
        expect(page).toMatchObject([
          {
            id: ids[1],
            companyId: 'comp_a',
            appId: null,
            createdAtMs: FIRST_MS + 1,
            targets: ['wh_1', 'wh_2'],
            disabledTargets: new Set(['wh_2']),
          },
        ]);
        break;
      }
    });

    it('reads pages with few messages, or few targets, or one message that has many', async () => {
      const [a, b, c, d] = ids;
      expect(await idsByPage({ maxMessages: 3 })).toEqual([[a, b, c], [d]]);
      expect(await idsByPage({ maxTargets: 5 })).toEqual([
        [a, b],
        [c, d],
      ]);
      expect(await idsByPage({ maxTargets: 1 })).toEqual([[a], [b], [c], [d]]);
    });

    it('does not read messages that were made later than asked', async () => {
      expect(await idsByPage({ beforeMs: FIRST_MS + 2 })).toEqual([ids.slice(0, 2)]);
    });

    it('knows which deliveries are recorded', async () => {
      const [known, unknown] = messages.map((each) => unattemptedDelivery(each, 'wh_1', FIRST_MS));
      if (!known || !unknown) throw new Error('there are four messages');
      await opened.deliveries.insertAll([known]);
      expect(await checks.recordedAmong([known.id, unknown.id])).toEqual(new Set([known.id]));
    });

    it('knows how long deliveries are kept, also after a change', async () => {
      await opened.keepFor(30);
      expect(await checks.retentionMs()).toBe(30 * DAY_MS);
      await opened.keepFor(7);
      expect(await checks.retentionMs()).toBe(7 * DAY_MS);
    });
  });
}
