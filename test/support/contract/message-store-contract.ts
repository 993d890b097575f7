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
        disabledTargets: ['wh_1'],
        traceparent: '00-1',
        isTest: true,
      });
      expect(await store.insertAll([plain, full])).toEqual(['stored', 'stored']);
      expect(await store.findCommitted([plain.id, full.id, 'msg_none'])).toEqual([plain, full]);
      expect(await store.payloadsOf([plain.id, 'msg_none'])).toEqual(
        new Map([[plain.id, plain.payload]]),
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
  });
}
