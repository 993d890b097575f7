import { expect, test } from '@jest/globals';
import { keepTrying } from '../../../test/support/time/keep-trying.ts';
import { openErasedMessages } from './erased-messages.ts';

let noted: string[] = [];
let isFollowed = false;
let onRead = (): void => undefined;

async function open() {
  const forgotten: string[] = [];
  const erased = await openErasedMessages({
    erasures: {
      listNoted: () => {
        const found = [...noted];
        onRead();
        return Promise.resolve(found);
      },
    },
    forgetPayload: (id) => forgotten.push(id),
    areChangesFollowed: () => isFollowed,
    keepTrying,
    logger: { warn: () => undefined },
  });
  const shown = (...ids: string[]): boolean[] => ids.map(erased.has);
  return { erased, forgotten, shown };
}

test('knows the noted messages from the start, and drops their payloads', async () => {
  [noted, isFollowed] = [['msg_2', 'msg_1'], true];
  const { shown, forgotten } = await open();
  expect(shown('msg_1', 'msg_2', 'msg_3')).toEqual([true, true, false]);
  expect(forgotten.sort()).toEqual(['msg_1', 'msg_2']);
});

test('adds and removes what is announced, without a read while changes are followed', async () => {
  [noted, isFollowed] = [[], true];
  const { erased, shown, forgotten } = await open();
  noted = ['msg_9'];
  erased.add('msg_1');
  erased.add('msg_2');
  erased.remove('msg_2');
  await erased.tick();
  expect([shown('msg_1', 'msg_2', 'msg_9'), forgotten]).toEqual([
    [true, false, false],
    ['msg_1', 'msg_2'],
  ]);
});

test('reads the notes at each tick while changes are not followed, and once when some may be missed', async () => {
  [noted, isFollowed] = [['msg_1'], false];
  const { erased, shown } = await open();
  noted = ['msg_2'];
  await erased.tick();
  expect(shown('msg_1', 'msg_2')).toEqual([false, true]);
  isFollowed = true;
  noted = ['msg_3'];
  await erased.tick();
  expect(shown('msg_3')).toEqual([false]);
  erased.refresh();
  await erased.tick();
  expect(shown('msg_2', 'msg_3')).toEqual([false, true]);
});

test('keeps a message that is announced during the read', async () => {
  [noted, isFollowed] = [[], false];
  const { erased, shown } = await open();
  onRead = () => {
    erased.add('msg_1');
  };
  await erased.tick();
  onRead = () => undefined;
  expect(shown('msg_1')).toEqual([true]);
});
