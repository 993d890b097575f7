import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import {
  CHECK_SHARES,
  type CheckSpan,
  type MessageChecks,
  shareOf,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
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
const SLOT_MS = 10_000;
const FIRST_SLOT_MS = Math.floor(Date.now() / SLOT_MS) * SLOT_MS - 60_000;
const FIRST_MS = FIRST_SLOT_MS + 1_000;
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
    const share = shareOf(ids[0] ?? '');
    let opened: OpenMessageChecks;
    let checks: MessageChecks;

    beforeAll(async () => {
      opened = await open();
      ({ checks } = opened);
      await opened.insert(messages);
    });

    afterAll(() => opened.close());

    const idsByPage = async (span: Partial<CheckSpan>): Promise<string[][]> => {
      const all = { share, afterId: '', beforeMs: Date.now(), maxMessages: 10, maxTargets: 100 };
      const pages: string[][] = [];
      for await (const page of checks.pagesOf({ ...all, ...span })) {
        pages.push(page.messages.map(({ id }) => id));
        expect(page.readTo).toBe(pages.at(-1)?.at(-1));
      }
      return pages;
    };
    const shownMs = async (): Promise<number | null | undefined> =>
      (await checks.positions()).checkedToMs[share];

    it('begins before the first message, and the next time where it ended', async () => {
      expect(await checks.checkedTo(share)).toBe('');
      await checks.markChecked(share, 'msg_5');
      expect(await checks.checkedTo(share)).toBe('msg_5');
      expect(await checks.checkedTo((share + 1) % CHECK_SHARES)).toBe('');
    });

    it('shows before when all messages of each share are checked', async () => {
      const [first, second] = ids;
      await checks.markChecked(share, second ?? '');
      expect(await shownMs()).toBe(FIRST_MS + 1);
      await checks.markComplete(share, FIRST_MS + 5_000);
      await checks.markChecked(share, first ?? '');
      expect(await shownMs()).toBe(FIRST_MS + 5_000);
      expect(await checks.checkedTo(share)).toBe(first);
    });

    it('has checked nothing at first', async () => {
      const { checks: others, close } = await open();
      const { nowMs, checkedToMs } = await others.positions();
      expect(Math.abs(nowMs - Date.now())).toBeLessThan(DAY_MS);
      expect(checkedToMs).toEqual(Array.from({ length: CHECK_SHARES }, () => null));
      await close();
    });

    it('reads every message in one share, wherever the shares begin', async () => {
      const { checks: others, insert, close } = await open();
      // From one message in each slot, to a slot of all shares without any.
      const timesMs = [0, 9, 10, 19, 20, 31, 95, 170, 171, 172, 360, 900].map(
        (seconds) => FIRST_SLOT_MS - 1_000_000 + seconds * 1_000,
      );
      const spread = timesMs.map((ms) => sampleMessage(countingIds(ms)('msg')));
      await insert(spread);
      const found: string[] = [];
      const beforeMs = FIRST_SLOT_MS;
      for (let each = 0; each < CHECK_SHARES; each += 1) {
        for (const afterId of ['', spread[3]?.id ?? '']) {
          const span = { share: each, afterId, beforeMs, maxMessages: 2, maxTargets: 100 };
          let readTo = afterId;
          for await (const page of others.pagesOf(span)) {
            expect(page.messages.every(({ id }) => shareOf(id) === each)).toBe(true);
            expect(page.messages.every(({ id }) => id > readTo && id <= page.readTo)).toBe(true);
            ({ readTo } = page);
            if (afterId === '') found.push(...page.messages.map(({ id }) => id));
          }
          // Up to the newest message, or past it to a slot of its own: the next check begins there.
          const { id: newest = '' } = spread.at(-1) ?? {};
          const passed = spread.filter(({ id }) => id > readTo);
          expect([passed, readTo <= newest]).toEqual([[], true]);
        }
      }
      expect(found.sort()).toEqual(spread.map(({ id }) => id).sort());
      await close();
    });

    it('reads messages in the order of their ids', async () => {
      expect(await idsByPage({ afterId: ids[0] ?? '' })).toEqual([ids.slice(1)]);
    });

    it('reads what the check needs of a message', async () => {
      const afterId = ids[0] ?? '';
      const span = { share, afterId, beforeMs: Date.now(), maxMessages: 1, maxTargets: 9 };
      for await (const page of checks.pagesOf(span)) {
        expect(page.messages).toMatchObject([
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
