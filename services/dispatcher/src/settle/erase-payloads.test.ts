import { beforeEach, expect, test } from '@jest/globals';
import { CHECK_AFTER_MS } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { createErasePayloads, type ErasePayloads } from './erase-payloads.ts';

let nowMs: number;
/** The messages of each call of the store. */
let asked: string[][];
/** The messages that were noted again, by `note`. */
let notedAgain: string[];
/** The messages with several targets. */
let large: Set<string>;
let erase: ErasePayloads;

beforeEach(() => {
  [nowMs, asked, notedAgain, large] = [0, [], [], new Set()];
  erase = createErasePayloads({
    erasure: {
      eraseOrNote(recorded) {
        const ids = recorded.map(({ messageId }) => messageId);
        asked.push(ids);
        return Promise.resolve(ids.filter((id) => large.has(id)));
      },
      note: (ids) => Promise.resolve(void notedAgain.push(...ids)),
    },
    keepTryingWhileDraining: keepTrying,
    monotonicMs: () => nowMs,
  });
});

const dueOf = (messageId: string) => sampleDue({ messageId, erasesPayload: true });

test('the store is asked once for the messages of apps that want it', async () => {
  await erase([dueOf('msg_1'), dueOf('msg_2'), sampleDue({ messageId: 'msg_3' })]);
  expect(asked).toEqual([['msg_1', 'msg_2']]);
});

test('the store is not asked for other messages', async () => {
  await erase([sampleDue()]);
  expect(asked).toEqual([]);
});

test('a message with several targets is looked at once, and noted once a second, well before it is checked', async () => {
  large.add('msg_1');
  for (; nowMs < CHECK_AFTER_MS / 2; nowMs += 100) await erase([dueOf('msg_1'), dueOf('msg_2')]);
  const looks = asked.filter((ids) => ids.includes('msg_1'));
  expect([looks.length, asked.length]).toEqual([1, 25]);
  expect(notedAgain).toEqual(['msg_1', 'msg_1']);
});

test('only so many messages are remembered, and the others are noted again', async () => {
  const ids = Array.from({ length: 10_001 }, (_, n) => `msg_${n}`);
  large = new Set(ids);
  await erase(ids.map(dueOf));
  await erase(ids.map(dueOf));
  expect(asked[1]).toEqual(['msg_0']);
});
