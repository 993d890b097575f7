import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { required } from '@posthorn/domain/required.ts';
import type { KnownPublisher } from '@posthorn/platform/mongo/messages/publishers.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { createRetryMetrics } from '../retry-metrics.ts';
import { sweepInTurns, type Work } from './sweep-backlogs.ts';
import { backlogOf, observe } from './when-taken-over.ts';

const DEAD: KnownPublisher = {
  id: 'gw_1',
  watermark: '',
  sweptTo: '',
  isTakenOver: true,
  heartbeatAtMs: 1,
  silentMs: 31_000,
  stuckMs: null,
};

let stored: Message[];
/** The ids that each page has read. */
let reads: string[];
let events: string[];
let published: string[];
/** After so many pages another process has the lease. */
let pagesLeft: number;
let monotonicMs: number;
/** The publisher whose messages cannot be read within the timeout. */
let slowId: string;

beforeEach(() => {
  [reads, events, published, pagesLeft] = [[], [], [], Infinity];
  [monotonicMs, slowId] = [0, ''];
});

const message = (id: string, publisherId: string): Message =>
  sampleMessage(id, { publisherId, targets: ['wh_1'] });

const done = (event: string) => Promise.resolve(void events.push(event));

function timeOut(): Promise<never> {
  monotonicMs += 20_000;
  return Promise.reject(new Error('timed out'));
}

function workThatReads(maxRead: number): Work {
  return {
    holder: 'me',
    createdTopic: 'created',
    maxRead,
    leases: {
      hold: () => Promise.resolve((pagesLeft -= 1) >= 0),
      release: () => Promise.resolve(),
    },
    publishers: {
      list: () => Promise.resolve([]),
      takeOver: () => Promise.resolve(true),
      markSwept: (id, to) => done(`swept ${id} to ${to}`),
      forget: (id) => done(`forget ${id}`),
    },
    messages: {
      pageOf: () => Promise.resolve([]),
      boundedPageOf: ({ publisherId, afterId, maxRead: count }) => {
        if (publisherId === slowId) return timeOut();
        const read = stored.filter(({ id }) => id > afterId).slice(0, count);
        reads.push(read.map(({ id }) => id).join(' '));
        const readTo = read.length < count ? null : (read.at(-1)?.id ?? null);
        const messages = read.filter((each) => each.publisherId === publisherId);
        return Promise.resolve({ messages, readTo });
      },
    },
    deliveries: { statesOf: () => Promise.resolve(new Map()) },
    records: {
      publish: (records) => {
        const ids = records.map(({ value }) => decodeMessageCreated(value).messageId);
        return Promise.resolve(void published.push(...ids));
      },
    },
    metrics: createRetryMetrics(new Registry(), [5_000]),
    rest: () => Promise.resolve(),
    monotonicMs: () => monotonicMs,
    logger: createLogger('test', 'silent'),
    oldestAtMs: new Map(),
    seen: new Map(['gw_1', 'gw_2'].map((id) => [id, observe(DEAD, undefined, 0)])),
    latestId: '',
    stopping: new AbortController().signal,
  };
}

const observationOf = ({ seen }: Work, { id }: KnownPublisher) =>
  required(seen, id, 'observation of the publisher');

/** One round, as the sweep does it after it has listed the publishers. */
async function sweepRound(work: Work, ...publishers: KnownPublisher[]): Promise<void> {
  const own = publishers.map((each) => backlogOf(each, observationOf(work, each)));
  await sweepInTurns(work, own);
}

describe('the sweep of a dead publisher beside others that store many messages', () => {
  test('finds its message behind theirs, in pages of bounded size', async () => {
    const others = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id, 'gw_2'));
    stored = [...others, message('msg_4', 'gw_1')];
    await sweepRound(workThatReads(2), DEAD);
    expect(reads).toEqual(['msg_1 msg_2', 'msg_3 msg_4', '']);
    expect(events).toEqual(['swept gw_1 to msg_4', 'forget gw_1']);
  });

  test.each([
    ['continues where the round before ended', 31_000, 'msg_2'],
    ['starts over while an insert of the dead gateway may be running', 29_000, 'msg_1'],
  ])('%s', async (_, silentMs, next) => {
    stored = ['msg_1', 'msg_2', 'msg_3'].map((id) => message(id, 'gw_2'));
    const work = workThatReads(1);
    pagesLeft = 1;
    await sweepRound(work, { ...DEAD, silentMs });
    pagesLeft = Infinity;
    await sweepRound(work, { ...DEAD, silentMs: 32_000 });
    expect(reads.slice(0, 2)).toEqual(['msg_1', next]);
    expect(events).toEqual(['forget gw_1']);
  });

  test('sweeps the next publisher when reading one times out in every round', async () => {
    stored = [message('msg_2', 'gw_2')];
    slowId = 'gw_1';
    const work = workThatReads(2);
    const round = () => sweepRound(work, DEAD, { ...DEAD, id: 'gw_2' });
    await round().then(round);
    expect(events).toContain('swept gw_2 to msg_2');
  });

  test('finds an insert that ended behind a message that was published already, and nothing twice', async () => {
    stored = [message('msg_2', 'gw_1'), message('msg_3', 'gw_1')];
    const work = workThatReads(10);
    const known = { ...DEAD, sweptTo: 'msg_3' };
    await sweepRound(work, { ...DEAD, silentMs: 11_000 });
    expect([published, events]).toEqual([['msg_2', 'msg_3'], ['swept gw_1 to msg_3']]);
    stored = [message('msg_1', 'gw_1'), ...stored];
    await sweepRound(work, known);
    expect(published).toEqual(['msg_2', 'msg_3', 'msg_1']);
    await sweepRound(work, known);
    expect([reads.at(-1), published]).toEqual(['', ['msg_2', 'msg_3', 'msg_1']]);
  });

  test('starts over after it has read everything', async () => {
    stored = [message('msg_1', 'gw_2')];
    const work = workThatReads(1);
    await sweepRound(work, DEAD);
    await sweepRound(work, DEAD);
    expect(reads).toEqual(['msg_1', '', 'msg_1', '']);
  });
});
