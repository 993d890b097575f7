import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { countingIds, sampleMessage } from '../samples/sample-message.ts';

export interface OpenMessages {
  store: MessageStore;
  close: () => Promise<void>;
}

/** What every MessageStore does, apart from idempotency keys. */
export function messageStoreContract(open: () => Promise<OpenMessages>): void {
  const newId = countingIds(Date.now());
  const message = (changes: Partial<Message> = {}): Message =>
    sampleMessage(newId('msg'), { payload: '{"n":1,"x":1e400}', ...changes });

  describe('stored messages', () => {
    let opened: OpenMessages;
    let store: MessageStore;

    beforeAll(async () => {
      opened = await open();
      ({ store } = opened);
    });

    afterAll(() => opened.close());

    it('are read as they were stored', async () => {
      const plain = message();
      const full = message({
        appId: 'app_1',
        eventType: 'paid',
        tags: ['a', 'b'],
        externalId: 'own-1',
        orderingKey: 'order-17',
        isOrdered: true,
        disabledTargets: new Set(['wh_1']),
        traceparent: '00-1',
        isTest: true,
        deliverAtMs: 1_700_000_000_000,
        expiresAtMs: 1_700_000_000_001,
        // After the test: MongoDB removes it then.
        removeAtMs: 4_000_000_000_000,
      });
      expect(await store.insertAll([plain, full])).toEqual(['stored', 'stored']);
      expect(await store.findCommitted([plain.id, full.id, 'msg_none'])).toEqual([plain, full]);
      const { companyId, payload, requestId } = plain;
      const stored = { companyId, payload, requestId, isErased: false };
      expect(await store.payloadsOf([plain.id, full.id, 'msg_none'])).toEqual(
        new Map([
          [plain.id, expect.objectContaining(stored)],
          [full.id, expect.objectContaining({ ...stored, traceparent: '00-1' })],
        ]),
      );
    });

    it('are not affected by a refused message of their batch', async () => {
      const old = message();
      await store.insertAll([old]);
      const outcomes = await store.insertAll([message(), old, message()]);
      expect(outcomes).toEqual(['stored', 'refused', 'stored']);
    });

    it('are read page by page for one publisher, in the order of their ids', async () => {
      const publisherId = 'gw_2';
      const [first, second, third] = [1, 2, 3].map(() => message({ publisherId }));
      if (!first || !second || !third) throw new Error('there are three messages');
      await store.insertAll([first, third, second, message()]);
      const page = await store.pageOf({ publisherId, afterId: '', limit: 2 });
      expect(page).toEqual([first, second]);
      expect(await store.pageOf({ publisherId, afterId: second.id, limit: 2 })).toEqual([third]);
    });

    it('are read in bounded pages, which tell where the next one begins', async () => {
      const publisherId = 'gw_3';
      const { id: before } = message();
      const [third, another] = [message({ publisherId }), message()];
      const [fourth, fifth] = [message({ publisherId }), message({ publisherId })];
      await store.insertAll([third, another, fourth, fifth]);
      const page = (maxRead: number, limit: number, afterId = before) =>
        store.boundedPageOf({ publisherId, afterId, limit, maxRead });
      expect(await page(2, 9)).toEqual({ messages: [third], readTo: another.id });
      expect(await page(3, 1)).toEqual({ messages: [third], readTo: third.id });
      expect(await page(4, 9)).toEqual({ messages: [third, fourth, fifth], readTo: fifth.id });
      expect(await page(5, 9)).toEqual({ messages: [third, fourth, fifth], readTo: null });
      expect(await page(1, 9, third.id)).toEqual({ messages: [], readTo: another.id });
      expect(await page(1, 9, fifth.id)).toEqual({ messages: [], readTo: null });
    });
  });
}
