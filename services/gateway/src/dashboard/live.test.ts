import { beforeEach, describe, expect, test } from '@jest/globals';
import { LiveStreams, type Stream } from './live.ts';

let streams: LiveStreams;
let watched: string[][];

beforeEach(() => {
  watched = [];
  streams = new LiveStreams((ids) => Promise.resolve(void watched.push(ids)));
});

interface Watcher extends Stream {
  texts: string[];
  isEnded: boolean;
}

type Changed = Partial<Stream> & { appId?: string | null; linkId?: string };

function watcher(companyId: string, { appId = null, linkId, ...changed }: Changed = {}): Watcher {
  const portal = linkId === undefined ? undefined : { linkId, capabilities: [] };
  const made: Watcher = {
    caller: { companyId, appId, ...(portal && { portal }) },
    texts: [],
    isEnded: false,
    write: (text) => made.texts.push(text) > 0,
    isAllowed: () => Promise.resolve(true),
    end: () => {
      made.isEnded = true;
    },
    ...changed,
  };
  return made;
}

const attempt = (appId?: string) => ({
  messageId: 'msg_1',
  deliveryId: 'dlv_1',
  webhookId: 'wh_1',
  appId,
  outcome: 'success' as const,
  attemptNumber: 1,
  at: '2026-11-24T06:00:00.000Z',
});

describe('a stream', () => {
  test('tells of the attempts of its company, and of no other', () => {
    const [ours, theirs] = [watcher('comp_a'), watcher('comp_b')];
    for (const each of [ours, theirs]) expect(streams.open(each)).toBe(true);
    streams.publish({ companyId: 'comp_a', attempts: [attempt('app_1')], hasMore: true });
    expect(ours.texts.join('')).toBe(
      `event: attempt\ndata: ${JSON.stringify(attempt('app_1'))}\n\nevent: more\ndata: {}\n\n`,
    );
    expect(theirs.texts).toEqual([]);
  });

  test('of one app tells of nothing else', () => {
    const ours = watcher('comp_a', { appId: 'app_1' });
    streams.open(ours);
    const attempts = [attempt('app_2'), attempt(), attempt('app_1')];
    streams.publish({ companyId: 'comp_a', attempts, hasMore: false });
    expect(ours.texts.join('').match(/app_\d/g)).toEqual(['app_1']);
  });

  test('pings every third round, and says who is watched in each', async () => {
    const ours = watcher('comp_a');
    streams.open(ours);
    for (let n = 0; n < 6; n += 1) await streams.tick();
    expect(ours.texts).toEqual(['event: ping\ndata: {}\n\n', 'event: ping\ndata: {}\n\n']);
    expect(watched).toEqual(Array.from({ length: 7 }, () => ['comp_a']));
  });

  test('ends when its caller may not watch any more, and when its client does not read', async () => {
    const revoked = watcher('comp_a', { isAllowed: () => Promise.resolve(false) });
    const slow = watcher('comp_a', { write: () => false });
    for (const each of [revoked, slow]) streams.open(each);
    await streams.tick();
    streams.publish({ companyId: 'comp_a', attempts: [attempt()], hasMore: false });
    expect([revoked.isEnded, slow.isEnded]).toEqual([true, true]);
    await streams.tick();
    expect(watched.at(-1)).toEqual([]);
  });

  test('is one of twenty of a company, and of 500 at all', () => {
    const opened = Array.from({ length: 21 }, () => streams.open(watcher('comp_a')));
    expect(opened.filter(Boolean)).toHaveLength(20);
    const others = Array.from({ length: 490 }, (_, n) => streams.open(watcher(`comp_${n}`)));
    expect(others.filter(Boolean)).toHaveLength(480);
  });

  test('is one of two of a visit, and of a hundred of visitors, which take none from the company', () => {
    const opened = Array.from({ length: 180 }, (_, n) =>
      streams.open(watcher('comp_a', { linkId: `plnk_${Math.floor(n / 3)}` })),
    );
    expect(opened.slice(0, 6)).toEqual([true, true, false, true, true, false]);
    expect(opened.filter(Boolean)).toHaveLength(100);
    const own = Array.from({ length: 21 }, () => streams.open(watcher('comp_a')));
    expect(own.filter(Boolean)).toHaveLength(20);
  });

  test('ends with the process, which opens no more', () => {
    const ours = watcher('comp_a');
    streams.open(ours);
    streams.stop();
    expect(ours.isEnded).toBe(true);
    expect(streams.open(watcher('comp_a'))).toBe(false);
  });

  test('frees its place when it is closed', () => {
    const all = Array.from({ length: 20 }, () => watcher('comp_a'));
    for (const each of all) streams.open(each);
    const [first] = all;
    if (first) streams.close(first);
    expect(streams.open(watcher('comp_a'))).toBe(true);
  });
});
