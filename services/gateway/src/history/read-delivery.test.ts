import { describe, expect, test } from '@jest/globals';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { createFindById, type FindByIdDeps } from './overview/find-by-id.ts';
import { readDelivery, type ReadStores } from './read-delivery.ts';

/** Of one millisecond. */
const idOf = (n: number): string => `msg_01hf2m6q7x${String(n).padStart(16, '0')}`;
const targets = (count: number) => Array.from({ length: count }, (_, n) => `wh_${n}`);
const MESSAGES = [
  sampleMessage(idOf(1), { targets: targets(3) }),
  sampleMessage(idOf(2), { targets: targets(1_200), disabledTargets: new Set(['wh_1100']) }),
];

async function* outlinesAt(): AsyncGenerator<Message> {
  for (const message of MESSAGES) yield await Promise.resolve(message);
}

const stores: ReadStores = {
  messages: {
    findOne: (_companyId, id) => Promise.resolve(MESSAGES.find((each) => each.id === id) ?? null),
    outlinesAt,
  },
  deliveries: { findMany: () => Promise.resolve([]) },
  webhooks: { findOne: () => Promise.resolve(null) },
};

function countTurns() {
  const turns = { taken: 0 };
  const takeTurn = (): Promise<void> => Promise.resolve(void (turns.taken += 1));
  return { turns, takeTurn };
}

describe('a delivery without a document', () => {
  test.each([
    ['wh_1', 'pending'],
    ['wh_1100', 'cancelled'],
  ])('to %s is found among the messages of its millisecond: %s', async (webhookId, status) => {
    const { takeTurn } = countTurns();
    const id = deliveryIdOf(idOf(2), webhookId);
    const found = await readDelivery({ ...stores, takeTurn }, 'comp_a', id);
    expect(found?.source).toMatchObject({ id, messageId: idOf(2), webhookId, status });
  });

  test('that does not exist takes a turn for each message and each 500 ids', async () => {
    const { turns, takeTurn } = countTurns();
    const id = deliveryIdOf(idOf(3), 'wh_1');
    expect(await readDelivery({ ...stores, takeTurn }, 'comp_a', id)).toBeNull();
    // The third message turn finds that there is none; the second message has two further slices.
    expect(turns.taken).toBe(5);
  });

  test('is searched for no longer than its request may take', async () => {
    const id = deliveryIdOf(idOf(3), 'wh_1');
    const takeTurn = (): Promise<void> => Promise.reject(new Error('the time is over'));
    await expect(readDelivery({ ...stores, takeTurn }, 'comp_a', id)).rejects.toThrow('over');
  });
});

test('an attempt is found by its id, with a turn for each 500 ids that are derived', async () => {
  const unused = () => Promise.reject(new Error('not used'));
  const attempted = ['wh_0', 'wh_1', 'wh_2', 'wh_3', 'wh_4', 'wh_5'];
  const deps: FindByIdDeps = {
    ...stores,
    projects: { get: unused },
    apps: { get: unused },
    messages: { ...stores.messages, outlinesOf: unused },
    deliveries: {
      ...stores.deliveries,
      outlinesOf: (_companyId, ids) =>
        Promise.resolve(
          attempted
            .map((webhookId) => ({ webhookId, id: deliveryIdOf(idOf(2), webhookId) }))
            .filter(({ id }) => ids.includes(id))
            .map((each) => ({
              ...each,
              status: 'exhausted' as const,
              attemptCount: 200,
              updatedAtMs: 1,
            })),
        ),
    },
    resends: { findShown: unused },
    hasKey: unused,
    readOutlines: unused,
  };
  const { turns, takeTurn } = countTurns();
  const deliveryId = deliveryIdOf(idOf(2), 'wh_5');
  const id = attemptIdOf(deliveryId, 200);
  const found = await createFindById(deps)('comp_a', id, takeTurn);
  expect(found).toMatchObject({ kind: 'attempt', messageId: idOf(2), deliveryId, id });
  // One for each message, and one after 600 ids of attempts.
  expect(turns.taken).toBe(3);
});
