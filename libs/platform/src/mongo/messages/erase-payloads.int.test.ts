import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import { settleCancelled } from '@posthorn/domain/delivery/settlement.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createDeliveryStore } from './deliveries.ts';
import { collection } from '../collections.ts';
import {
  createPayloadErasure,
  type DueNote,
  inTurn,
  type PayloadErasure,
  type RecordedRef,
} from './erase-payloads.ts';
import { createMessageStore } from './messages.ts';

/** Targets of one message that are looked up in one check. */
const SLICE = 100;

/** Of today: MongoDB removes what has expired once a minute. */
const newId = countingIds(Date.now());
const database = duringTests(openScratchDatabase, ({ drop }) => drop());
/** Whatever is noted may be checked at once. */
let erasure: PayloadErasure;

beforeAll(() => {
  erasure = createPayloadErasure(database.db, 0);
});

beforeEach(() => notes().deleteMany({}));

const notes = () => collection(database.db, 'erasures');

const refOf = (messageId: string, n = 0, companyId = 'comp_1'): RecordedRef => ({
  messageId,
  companyId,
  deliveryId: deliveryIdOf(messageId, `wh_${n}`),
});

/** Stores a message whose deliveries have these statuses; null for one without a document. */
async function plant(...statuses: (DeliveryStatus | null)[]): Promise<string> {
  const targets = statuses.map((_, n) => `wh_${n}`);
  const message = sampleMessage(newId('msg'), { targets, erasesPayload: true });
  await createMessageStore(database.db).insertAll([message]);
  const settled = statuses.flatMap((status, n) => {
    const ref = { ...message, ...refOf(message.id, n), webhookId: `wh_${n}`, appId: null };
    return status ? [{ ...settleCancelled(ref, 'webhook_deleted', 1), status, reason: null }] : [];
  });
  await createDeliveryStore(database.db).insertAll(settled);
  return message.id;
}

/** The delivery to the `n`-th target succeeds. */
async function deliver(messageId: string, n: number): Promise<void> {
  const { deliveryId: _id } = refOf(messageId, n);
  await database.db.days.deliveries.of(_id).updateOne({ _id }, { $set: { status: 'delivered' } });
  await erasure.eraseOrNote([refOf(messageId, n)]);
}

async function isErased(id: string): Promise<boolean> {
  const [message] = await createMessageStore(database.db).findCommitted([id]);
  expect(message?.payload === '').toBe(message?.isPayloadErased === true);
  return message?.isPayloadErased === true;
}

const readNotes = async () => (await notes().find().toArray()).map(({ _id }) => _id);

describe('a message with one target', () => {
  it('has its payload erased as soon as that is delivered, without a note', async () => {
    const [first, second] = [await plant('delivered'), await plant('delivered')];
    const refs = [refOf(first), refOf(second), refOf('msg_none')];
    expect(await erasure.eraseOrNote(refs)).toEqual([]);
    expect(await erasure.eraseOrNote(refs)).toEqual([]);
    expect([await isErased(first), await isErased(second)]).toEqual([true, true]);
    expect(await readNotes()).toEqual([]);
  });

  it.each(['pending', 'exhausted', 'cancelled', null] as const)(
    'keeps its payload while that is not delivered: %s',
    async (status) => {
      const id = await plant(status);
      expect(await erasure.eraseOrNote([refOf(id)])).toEqual([]);
      expect([await isErased(id), await readNotes()]).toEqual([false, []]);
    },
  );
});

describe('a message with several targets', () => {
  it('is noted by a success, and its payload erased when all are delivered', async () => {
    const ids = [await plant('delivered', 'delivered'), await plant('delivered', 'delivered')];
    expect(await erasure.eraseOrNote(ids.map((id) => refOf(id)))).toEqual(ids);
    expect(await isErased(ids[0] ?? '')).toBe(false);
    expect(await erasure.checkNoted()).toBe(2);
    for (const id of ids) expect(await isErased(id)).toBe(true);
    expect([await erasure.checkNoted(), await readNotes()]).toEqual([0, []]);
    expect(await erasure.eraseOrNote(ids.map((id) => refOf(id)))).toEqual([]);
  });

  it.each([null, 'pending', 'exhausted', 'cancelled'] as const)(
    'keeps its payload while one of them is not delivered (%s), until it is',
    async (status) => {
      const id = await plant('delivered', status ?? 'pending', 'delivered');
      const { deliveryId: _id } = refOf(id, 1);
      if (!status) await database.db.days.deliveries.of(_id).deleteOne({ _id });
      await erasure.eraseOrNote([refOf(id)]);
      await erasure.checkNoted();
      expect([await isErased(id), await readNotes()]).toEqual([false, []]);
      if (!status) return;
      await deliver(id, 1);
      await erasure.checkNoted();
      expect(await isErased(id)).toBe(true);
    },
  );

  it('is not noted by an attempt that did not deliver', async () => {
    const id = await plant('delivered', 'exhausted');
    expect(await erasure.eraseOrNote([refOf(id, 1)])).toEqual([]);
    expect(await readNotes()).toEqual([]);
  });

  it('is checked some time after its last success', async () => {
    const later = createPayloadErasure(database.db, 3_600_000);
    const id = await plant('delivered', 'delivered');
    await erasure.eraseOrNote([refOf(id)]);
    await later.eraseOrNote([refOf(id)]);
    expect(await erasure.checkNoted()).toBe(0);
  });

  it('is forgotten when it is not stored any more', async () => {
    const id = await plant('delivered', 'delivered');
    await erasure.eraseOrNote([refOf(id)]);
    await database.db.days.messages.of(id).deleteOne({ _id: id });
    expect(await erasure.checkNoted()).toBe(1);
    expect(await readNotes()).toEqual([]);
  });
});

describe('a message with many targets', () => {
  const all = (count: number): DeliveryStatus[] => Array<DeliveryStatus>(count).fill('delivered');

  it.each([2 * SLICE, 2 * SLICE + 1])(
    'is checked slice by slice, and others between: %i targets',
    async (count) => {
      const large = await plant(...all(count));
      await erasure.eraseOrNote([refOf(large)]);
      await erasure.checkNoted();
      expect(await isErased(large)).toBe(false);
      const small = await plant('delivered', 'delivered');
      await erasure.eraseOrNote([refOf(small)]);
      await erasure.checkNoted();
      expect(await isErased(small)).toBe(true);
      await erasure.checkNoted();
      expect([await isErased(large), await readNotes()]).toEqual([true, []]);
    },
  );

  it('is not read again from its beginning with each success', async () => {
    const id = await plant(...all(SLICE), 'pending', 'pending', ...all(SLICE));
    await erasure.eraseOrNote([refOf(id)]);
    await erasure.checkNoted();
    await erasure.checkNoted();
    expect(await notes().findOne({ _id: id })).toMatchObject({ checked: SLICE });
    expect(await erasure.checkNoted()).toBe(0);
    await deliver(id, SLICE);
    await erasure.checkNoted();
    expect(await notes().findOne({ _id: id })).toMatchObject({ checked: SLICE });
    await deliver(id, SLICE + 1);
    await erasure.checkNoted();
    await erasure.checkNoted();
    expect([await isErased(id), await readNotes()]).toEqual([true, []]);
  });
});

describe('the notes of a company', () => {
  it('are checked before most of a company that has many', async () => {
    const many = Array.from({ length: 150 }, (_, n) => refOf(newId('msg'), n, 'comp_many'));
    await erasure.note(many);
    const [few, other] = [
      await plant('delivered', 'delivered'),
      await plant('delivered', 'delivered'),
    ];
    await erasure.note([refOf(few, 0, 'comp_few'), refOf(other, 0, 'comp_other')]);
    expect(await erasure.checkNoted()).toBe(100);
    expect([await isErased(few), await isErased(other)]).toEqual([true, true]);
    expect(await erasure.checkNoted()).toBe(52);
  });

  it('are checked in their order where it is the only one, and so are those of earlier versions', async () => {
    const ids = Array.from({ length: 120 }, () => newId('msg'));
    const dueAt = (n: number) => new Date(1_000 + n);
    const documents = ids.map((_id, n) => ({
      _id,
      dueAt: dueAt(n),
      createdAt: dueAt(n),
      checked: 0,
    }));
    await notes().insertMany(documents);
    expect(await erasure.checkNoted()).toBe(100);
    expect(await readNotes()).toEqual(ids.slice(100));
  });
});

it('takes due notes of all companies in turn, the oldest of each first', () => {
  const note = (companyId: string, ms: number): DueNote => {
    return { _id: `${companyId}${ms}`, companyId, dueAt: new Date(ms), checked: 0 };
  };
  const due = [note('a', 1), note('a', 3), note('b', 9), note('a', 2), note('c', 4), note('b', 8)];
  const order = inTurn(due).map(({ _id }) => _id);
  expect(order).toEqual(['a1', 'c4', 'b8', 'a2', 'b9', 'a3']);
});

it('a success during a check is not missed', async () => {
  const id = await plant('delivered', 'pending');
  await erasure.eraseOrNote([refOf(id)]);
  const { deliveries } = database.db.days;
  // The second delivery succeeds between the look at it and what the check makes of that.
  const during = Object.assign(Object.create(database.db) as typeof database.db, {
    days: {
      ...database.db.days,
      deliveries: {
        ...deliveries,
        group: (ids: readonly string[], idOf: (id: string) => string) =>
          deliveries.group(ids, idOf).map(({ documents, items }) => ({
            items,
            documents: {
              find: (...query: Parameters<typeof documents.find>) => ({
                project: () => ({
                  toArray: async () => {
                    const found = await documents.find(...query).toArray();
                    await deliver(id, 1);
                    return found;
                  },
                }),
              }),
            },
          })),
      },
    },
  });
  await createPayloadErasure(during, 0).checkNoted();
  expect([await isErased(id), await readNotes()]).toEqual([false, [id]]);
  await erasure.checkNoted();
  expect(await isErased(id)).toBe(true);
});
