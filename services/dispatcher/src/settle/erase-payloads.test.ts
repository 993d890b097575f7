import { beforeEach, expect, test } from '@jest/globals';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { createErasePayloads, type ErasePayloads } from './erase-payloads.ts';

let asked: (readonly string[])[];
let erase: ErasePayloads;

beforeEach(() => {
  asked = [];
  erase = createErasePayloads({
    eraseDelivered: (ids) => Promise.resolve(void asked.push(ids)),
    keepTryingWhileDraining: keepTrying,
  });
});

test('the store is asked once for the messages of apps that want it', async () => {
  const erasesPayload = true as const;
  const dues = ['msg_1', 'msg_2', 'msg_1'].map((messageId) =>
    sampleDue({ messageId, erasesPayload }),
  );
  await erase([...dues, sampleDue({ messageId: 'msg_3' })]);
  expect(asked).toEqual([['msg_1', 'msg_2']]);
});

test('the store is not asked for other messages', async () => {
  await erase([sampleDue()]);
  expect(asked).toEqual([]);
});
