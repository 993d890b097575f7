import { expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import type { OutgoingRecord } from '../kafka/record-log.ts';
import { publishInBatches } from './publish-in-batches.ts';

function message(id: string, targetCount: number): Message {
  return {
    id,
    companyId: 'comp_1',
    appId: null,
    payload: '{}',
    targets: Array.from({ length: targetCount }, (_, index) => `wh_${index}`),
    disabledTargets: new Set<string>(),
    publisherId: 'gw_1',
    requestId: 'request-1',
    eventType: null,
    idempotency: null,
    createdAtMs: 1,
  };
}

test('every record of every message is published once, at most 500 at a time', async () => {
  const sends: (readonly OutgoingRecord[])[] = [];
  const publish = (records: readonly OutgoingRecord[]) => {
    sends.push(records);
    return Promise.resolve();
  };
  await publishInBatches({ publish }, 'created', [message('msg_1', 1_200), message('msg_2', 3)]);
  expect(sends.map(({ length }) => length)).toEqual([500, 500, 200, 3]);
  expect(new Set(sends.flat().map(({ key, value }) => key + value.toString())).size).toBe(1_203);
});
