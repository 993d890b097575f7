import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import mongoose from 'mongoose';
import { CoalescingCache } from '../memory/coalescing-cache.ts';
import { type Change, ChangeFeed, type CursorReply, mayHaveChanged } from './follow-changes.ts';

const { Long, Timestamp } = mongoose.mongo;

type Event = NonNullable<CursorReply['cursor']['nextBatch']>[number];

const ns = { coll: 'webhooks' };

const updateOf = (id: string): Event => {
  return { operationType: 'update', ns, documentKey: { _id: id } };
};

interface ReplyOf {
  events?: Event[];
  /** Seconds since 1970 of the cluster, and of what the stream has. */
  clusterS?: number;
  tokenS?: number;
  isClosed?: boolean;
}

function replyOf({ events = [], clusterS = 7, tokenS = clusterS, isClosed }: ReplyOf = {}) {
  const hex = tokenS.toString(16).padStart(8, '0').toUpperCase();
  return {
    cursor: {
      id: isClosed ? Long.ZERO : Long.fromNumber(42),
      nextBatch: events,
      postBatchResumeToken: { _data: `82${hex}000000012B0429296E1404` },
    },
    $clusterTime: { clusterTime: new Timestamp({ t: clusterS, i: 1 }) },
  } satisfies CursorReply;
}

let nowMs: number;
let commands: string[];
let replies: (ReplyOf | Error)[];
let changed: Change[];
let missed: number;
let logged: string[];

/** Replies to the commands as listed, and stops after the last one. */
function openFeed(): ChangeFeed {
  const log = (_fields: object, text: string) => void logged.push(text);
  return new ChangeFeed(['webhooks'], {
    openSession: () => ({
      run: (command) => {
        commands.push(Object.keys(command)[0] ?? '');
        const reply = replies.shift() ?? {};
        nowMs += 100;
        return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(replyOf(reply));
      },
      end: () => Promise.resolve(),
    }),
    onChange: (change) => changed.push(change),
    onMissed: () => (missed += 1),
    wait: (ms) => {
      nowMs += ms;
      return Promise.resolve();
    },
    isStopping: () => replies.length === 0,
    monotonicMs: () => nowMs,
    logger: { warn: log as never, info: log as never },
  });
}

beforeEach(() => {
  [nowMs, commands, replies, changed, missed, logged] = [0, [], [], [], 0, []];
});

describe('a change feed', () => {
  it('says when it is current for the first time', async () => {
    replies = [{ tokenS: 6 }, {}];
    const feed = openFeed();
    let isCurrent = false;
    void feed.whenCurrent.then(() => (isCurrent = true));
    await feed.run();
    expect(isCurrent).toBe(true);
    replies = [{ tokenS: 6 }];
    const behind = openFeed();
    void behind.whenCurrent.then(() => (isCurrent = false));
    await behind.run();
    expect(isCurrent).toBe(true);
  });

  it('reports the ids of changed documents, and the owners of new ones', async () => {
    const inserted = { operationType: 'insert', ns, documentKey: { _id: 'wh_2' } };
    const fullDocument = { appId: 'app_1', companyId: 'comp_1' };
    replies = [{}, { events: [updateOf('wh_1'), { ...inserted, fullDocument }] }];
    await openFeed().run();
    const of = { collection: 'webhooks', isRemoved: false, fields: null };
    expect(changed).toEqual([
      { ...of, id: 'wh_1', appId: null, companyId: null },
      { ...of, id: 'wh_2', appId: 'app_1', companyId: 'comp_1' },
    ]);
  });

  it('reports which fields an update has changed, and that it may be any otherwise', async () => {
    const fields = ['name', 'held.untilMs'];
    const update = { ...updateOf('wh_1'), fields };
    replies = [{}, { events: [update, { ...update, operationType: 'replace' }] }];
    await openFeed().run();
    expect(changed.map((change) => change.fields)).toEqual([fields, null]);
    const mayHave = (name: string) => changed.map((change) => mayHaveChanged(change, name));
    expect([mayHave('held'), mayHave('name'), mayHave('hel')]).toEqual([
      [true, true],
      [true, true],
      [false, true],
    ]);
  });

  it('is current for a second after it asked for what the stream had', async () => {
    replies = [{}, {}];
    const feed = openFeed();
    expect(feed.isCurrent()).toBe(false);
    await feed.run();
    // The last poll was sent at 600 ms: the first reply took 100 ms, then came a pause of 500 ms.
    nowMs = 1_600;
    expect(feed.isCurrent()).toBe(true);
    nowMs = 1_601;
    expect(feed.isCurrent()).toBe(false);
  });

  it.each<[string, ReplyOf]>([
    ['a shard is behind', { clusterS: 8, tokenS: 7 }],
    [
      'there may be further events',
      { events: Array.from({ length: 1_000 }, () => updateOf('wh_1')) },
    ],
  ])('is not current while %s', async (_case, reply) => {
    replies = [reply];
    const feed = openFeed();
    await feed.run();
    expect(feed.isCurrent()).toBe(false);
  });

  it.each<[string, ReplyOf | Error]>([
    ['the connection is lost', new Error('connection closed')],
    ['MongoDB closes the cursor', { isClosed: true }],
    ['the collection is dropped', { events: [{ operationType: 'drop', ns }] }],
  ])('forgets everything and is opened anew when %s', async (_case, reply) => {
    replies = [{}, reply, new Error('no primary'), {}, {}];
    const feed = openFeed();
    await feed.run();
    expect(commands).toEqual(['aggregate', 'getMore', 'aggregate', 'aggregate', 'getMore']);
    expect([missed, feed.isCurrent()]).toEqual([2, true]);
    expect(logged).toEqual([
      'cannot follow changes, caches keep entries for two seconds',
      'follows changes again',
    ]);
  });
});

/** What happens in one tick of 100 ms. */
type Step = 'write' | 'read' | 'cut' | 'heal' | 'slow' | 'quick' | 'elect' | 'stall' | 'pass';

const STEPS = fc.oneof(
  { arbitrary: fc.constant<Step>('pass'), weight: 12 },
  { arbitrary: fc.constantFrom<Step>('write', 'read', 'cut', 'heal'), weight: 8 },
  { arbitrary: fc.constantFrom<Step>('slow', 'quick'), weight: 1 },
  { arbitrary: fc.constantFrom<Step>('elect', 'stall'), weight: 1 },
);
const STALE_MS = 2_000;
/** How long the response to a slow read is under way. */
const SLOW_READ_MS = 3_000;

/**
 * A process with a cache, in front of a primary: its connections can be cut, in which case commands hang until they
 * are healed or fail after five seconds, and it can be replaced by another primary, which closes the streams.
 */
class Installation {
  nowMs = 1;
  readonly #events: number[] = [];
  #version = 0;
  /** When each version was confirmed. */
  readonly #writtenAtMs = [0];
  #term = 0;
  #isCut = false;
  #isStalled = 0;
  #readMs = 0;
  #stale: Error | null = null;
  readonly #timers: { atMs: number; act: () => void }[] = [];
  isStopping = false;
  readonly #feed: ChangeFeed;
  readonly #cache;

  constructor() {
    const quiet = (() => undefined) as never;
    this.#feed = new ChangeFeed(['webhooks'], {
      openSession: () => this.#session(),
      onChange: ({ id }) => {
        this.#cache.forget(id);
      },
      onMissed: () => {
        this.#cache.forgetAll();
      },
      wait: (ms) => this.#after(ms),
      isStopping: () => this.isStopping,
      monotonicMs: () => this.nowMs,
      logger: { warn: quiet, info: quiet },
    });
    this.#cache = new CoalescingCache<{ version: number }>({
      maxSize: 10,
      sizeOf: () => 1,
      ttlMs: 2_000,
      isFollowed: () => this.#feed.isCurrent(),
      monotonicMs: () => this.nowMs,
    });
    void this.#feed.run();
  }

  async step(step: Step): Promise<void> {
    if (step === 'write') {
      this.#version += 1;
      this.#events.push(this.#version);
      this.#writtenAtMs.push(this.nowMs);
    }
    if (step === 'cut') this.#isCut = true;
    if (step === 'heal') this.#isCut = false;
    if (step === 'elect') this.#term += 1;
    if (step === 'stall') this.#isStalled = 10;
    if (step === 'slow') this.#readMs = SLOW_READ_MS;
    if (step === 'quick') this.#readMs = 0;
    if (step === 'read') void this.#read();
    this.nowMs += 100;
    if (this.#isStalled-- > 0) return;
    for (const timer of this.#timers.splice(0)) {
      if (timer.atMs <= this.nowMs) timer.act();
      else this.#timers.push(timer);
    }
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    if (this.#stale) throw this.#stale;
  }

  /** A read of MongoDB takes another connection: the one of the stream may be cut alone. */
  async #read(): Promise<void> {
    const askedMs = this.nowMs;
    const found = await this.#cache.get('wh_1', () => this.#load());
    const next = this.#writtenAtMs[(found?.version ?? 0) + 1];
    if (next !== undefined && askedMs - next > STALE_MS)
      this.#stale = new Error(`a version was read ${askedMs - next} ms after it was changed`);
  }

  async #load(): Promise<{ version: number }> {
    const version = this.#version;
    if (this.#readMs > 0) await this.#after(this.#readMs);
    return { version };
  }

  #after(ms: number): Promise<void> {
    return new Promise((resolve) => this.#timers.push({ atMs: this.nowMs + ms, act: resolve }));
  }

  async #passes(sentMs: number): Promise<void> {
    while (this.#isCut) {
      if (this.nowMs - sentMs > 5_000) throw new Error('timed out');
      await this.#after(100);
    }
  }

  #session() {
    let position = -1;
    let term = -1;
    const run = async (command: object): Promise<CursorReply> => {
      const sentMs = this.nowMs;
      await this.#passes(sentMs);
      if ('aggregate' in command) [position, term] = [this.#events.length, this.#term];
      if (term !== this.#term) throw new Error('the cursor is not there');
      const events = this.#events.slice(position).map(() => updateOf('wh_1'));
      position = this.#events.length;
      // The response is under way while more is written.
      await this.#after(100);
      await this.#passes(sentMs);
      return replyOf({ events });
    };
    return { run, end: () => Promise.resolve() };
  }
}

it('no value is read more than two seconds after it was changed, whatever happens to the stream', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEPS, { minLength: 50, maxLength: 600 }), async (steps) => {
      const installation = new Installation();
      for (const step of steps) await installation.step(step);
      installation.isStopping = true;
    }),
    { numRuns: 100 },
  );
});
