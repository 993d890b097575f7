import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { START_MS, storeMessages, type Stored } from '../memory/memory-messages.ts';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import { charsOfMessage } from '@posthorn/domain/message.ts';

/** The queries behind the lists of messages, of the company comp_a. */
export interface MessageLists {
  messages: Pick<MessageQueries, 'listOutlines' | 'outlinesOf' | 'findMany'>;
  deliveries: Pick<DeliveryQueries, 'outlinesOf' | 'messagesOfFailed'>;
}

export interface OpenMessageLists extends MessageLists {
  close: () => Promise<void>;
}

/** Five messages: an app has the first and the fourth, and the second and third share a millisecond. */
const SHAPES = [
  ['exhausted', 'delivered'],
  ['pending'],
  [],
  ['exhausted', 'exhausted', 'none'],
  ['cancelled'],
] as const;

/** What the queries behind the lists do. */
export function messageListContract(open: (stored: Stored[]) => Promise<OpenMessageLists>): void {
  const stored = storeMessages(SHAPES);
  const ids = stored.map(({ message }) => message.id);
  const idsOf = (numbers: readonly number[]) => numbers.map((n) => ids[n]);
  const idOf = (n: number): string => ids[n] ?? '';
  let lists: OpenMessageLists;

  beforeAll(async () => {
    lists = await open(stored);
  });

  afterAll(() => lists.close());

  describe('the outlines of messages', () => {
    it.each<[string, Parameters<MessageQueries['listOutlines']>[1], number, number[]]>([
      ['of the company, newest first', {}, 9, [4, 3, 2, 1, 0]],
      ['up to the limit', {}, 2, [4, 3]],
      ['of an app', { appId: 'app_1' }, 9, [3, 0]],
      ['to a webhook', { webhookId: 'wh_1' }, 9, [3, 0]],
      ['with a tag', { tag: 'all' }, 9, [4, 2, 0]],
      ['with an external id', { externalId: 'own' }, 9, [4, 1]],
      ['with both', { tag: 'even', externalId: 'own' }, 9, [4]],
      ['of an app with a tag', { appId: 'app_1', tag: 'even' }, 9, [0]],
      ['of an app to a webhook', { appId: 'app_1', webhookId: 'wh_2' }, 9, [3]],
      ['from an id on, which is included', { fromId: idOf(2) }, 9, [4, 3, 2]],
      ['before an id, which is excluded', { beforeId: idOf(2) }, 9, [1, 0]],
      ['between two ids', { fromId: idOf(1), beforeId: idOf(3) }, 9, [2, 1]],
      ['from a time on', { fromId: firstIdAt('msg', START_MS + 2) }, 9, [4, 3]],
      ['of an empty range', { fromId: idOf(2), beforeId: idOf(2) }, 9, []],
    ])('are listed %s', async (_what, filter, limit, expected) => {
      const bounds = { messages: limit, targets: 99 };
      const found = await lists.messages.listOutlines('comp_a', filter, bounds);
      expect(found.map(({ id }) => id)).toEqual(idsOf(expected));
    });

    it.each([
      [1, [4]],
      [2, [4, 3]],
      [4, [4, 3]],
      [5, [4, 3, 2, 1]],
    ])('end with the message that reaches %i targets', async (targets, expected) => {
      const bounds = { messages: 9, targets };
      const found = await lists.messages.listOutlines('comp_a', {}, bounds);
      expect(found.map(({ id }) => id)).toEqual(idsOf(expected));
      const byId = await lists.messages.outlinesOf('comp_a', ids, targets);
      expect(byId.map(({ id }) => id)).toEqual(idsOf(expected));
    });

    it('have the targets', async () => {
      const [found] = await lists.messages.outlinesOf('comp_a', [idOf(0), 'msg_none'], 9);
      expect(found).toMatchObject({
        id: idOf(0),
        appId: 'app_1',
        tags: ['even', 'all'],
        targets: ['wh_0', 'wh_1'],
      });
    });
  });

  it('messages are found by their ids', async () => {
    const found = await lists.messages.findMany('comp_a', [idOf(1), 'msg_none'], 1_000);
    expect(found).toEqual([stored[1]?.message]);
    expect(await lists.messages.findMany('comp_a', [], 1_000)).toEqual([]);
  });

  it.each([
    [1, 1],
    [2, 2],
    [9, 5],
  ])('messages are read newest first, up to the texts of %i: %i', async (messages, expected) => {
    const newest = stored.toReversed().slice(0, messages);
    const chars = newest.reduce((sum, { message }) => sum + charsOfMessage(message), 0);
    const found = await lists.messages.findMany('comp_a', ids, chars);
    expect(found.map(({ id }) => id)).toEqual(idsOf([4, 3, 2, 1, 0].slice(0, expected)));
  });

  describe('the messages of failed deliveries', () => {
    it.each<[string, Parameters<DeliveryQueries['messagesOfFailed']>[1], number, number[]]>([
      ['newest first, once for each failure', { status: 'exhausted' }, 9, [3, 3, 0]],
      ['of the other status', { status: 'cancelled' }, 9, [4]],
      ['up to the limit', { status: 'exhausted' }, 1, [3]],
      ['from an id on, which is included', { status: 'exhausted', fromId: idOf(3) }, 9, [3, 3]],
      ['before an id, which is excluded', { status: 'exhausted', beforeId: idOf(3) }, 9, [0]],
    ])('are listed %s', async (_what, filter, limit, expected) => {
      const found = await lists.deliveries.messagesOfFailed('comp_a', filter, limit);
      expect(found).toEqual(idsOf(expected));
    });
  });

  it('the outlines of deliveries are found by their ids', async () => {
    const known = stored.flatMap((each) => each.known);
    const found = await lists.deliveries.outlinesOf('comp_a', [known[0]?.id ?? '', 'dlv_none']);
    expect(found).toMatchObject([{ id: known[0]?.id, webhookId: 'wh_0', status: 'exhausted' }]);
    expect(await lists.deliveries.outlinesOf('comp_a', [])).toEqual([]);
  });
}
