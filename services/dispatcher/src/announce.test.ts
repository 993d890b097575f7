import { beforeEach, describe, expect, test } from '@jest/globals';
import type { LiveNews } from '@posthorn/platform/redis/live-attempts.ts';
import { REPEAT_REPORT_MS } from '@posthorn/platform/redis/reading-positions.ts';
import {
  createLiveAnnouncements,
  createReadingReporter,
  type LiveAnnouncements,
  type ReadingReporter,
} from './announce.ts';
import type { SettledAttempt } from './settle.ts';

describe('report reading', () => {
  let nowMs: number;
  let reports: [number, number][][];
  let reporter: ReadingReporter;

  beforeEach(() => {
    [nowMs, reports] = [0, []];
    const report = (changed: ReadonlyMap<number, number>) => void reports.push([...changed]);
    reporter = createReadingReporter({ report }, () => nowMs);
  });

  describe('a dispatcher', () => {
    test('reports the record that it began last in each partition, once', () => {
      reporter.note({ partition: 1, timestampMs: 10 });
      reporter.note({ partition: 2, timestampMs: 11 });
      reporter.note({ partition: 1, timestampMs: 12 });
      reporter.tick();
      reporter.tick();
      expect(reports).toEqual([
        [
          [1, 12],
          [2, 11],
        ],
      ]);
    });

    test('reports the latest record, so that those of a gateway whose clock is ahead count as read', () => {
      for (const timestampMs of [10, 5_000, 11]) reporter.note({ partition: 1, timestampMs });
      reporter.tick();
      reporter.note({ partition: 1, timestampMs: 12 });
      reporter.tick();
      expect(reports).toEqual([[[1, 5_000]], [[1, 5_000]]]);
      reporter.forget();
      reporter.note({ partition: 1, timestampMs: 13 });
      reporter.tick();
      expect(reports[2]).toEqual([[1, 13]]);
    });

    test('repeats the position of each of its partitions, so that gateways know that it is alive', () => {
      reporter.note({ partition: 1, timestampMs: 10 });
      reporter.tick();
      reporter.note({ partition: 2, timestampMs: 11 });
      nowMs = REPEAT_REPORT_MS;
      reporter.tick();
      reporter.tick();
      expect(reports).toEqual([
        [[1, 10]],
        [
          [1, 10],
          [2, 11],
        ],
      ]);
    });

    test('reports nothing of partitions that were assigned anew until it begins a record of them', () => {
      reporter.note({ partition: 1, timestampMs: 10 });
      reporter.forget();
      nowMs = REPEAT_REPORT_MS;
      reporter.tick();
      expect(reports).toEqual([]);
    });
  });
});

describe('announce attempts', () => {
  let published: LiveNews[];
  let watched: Set<string>;
  let isAway: boolean;
  let live: LiveAnnouncements;

  beforeEach(() => {
    published = [];
    watched = new Set();
    isAway = false;
    live = createLiveAnnouncements({
      live: {
        readWatched: () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(watched)),
        publish: (news) => void published.push(news),
      },
      logger: { warn: () => undefined },
    });
  });

  function settled(companyId: string, attempt: object = {}, changed: object = {}): SettledAttempt {
    const due = { companyId, messageId: 'msg_1', deliveryId: 'dlv_1', webhookId: 'wh_1' };
    const made = {
      outcome: 'success',
      number: 1,
      trigger: 'first',
      startedAtMs: 0,
      durationMs: 40,
    };
    const all = { due, attempt: { ...made, ...attempt }, appId: 'app_1', cancelReason: null };
    return { ...all, ...changed } as unknown as SettledAttempt;
  }

  describe('attempts', () => {
    test('of companies that nobody watches are not announced', async () => {
      live.announce(settled('comp_a'));
      await live.tick();
      expect(published).toEqual([]);
    });

    test('of watched companies are announced together, once a second', async () => {
      watched = new Set(['comp_a']);
      await live.tick();
      live.announce(settled('comp_a'));
      live.announce(settled('comp_b'));
      live.announce(settled('comp_a', { outcome: 'timeout', number: 2 }, { appId: null }));
      await live.tick();
      await live.tick();
      const common = { messageId: 'msg_1', deliveryId: 'dlv_1', webhookId: 'wh_1' };
      const at = '1970-01-01T00:00:00.040Z';
      const attempts = [
        {
          ...common,
          appId: 'app_1',
          outcome: 'success',
          status: 'delivered',
          attemptNumber: 1,
          at,
        },
        { ...common, outcome: 'timeout', status: 'pending', attemptNumber: 2, at },
      ];
      expect(published).toEqual([{ companyId: 'comp_a', attempts, hasMore: false }]);
    });

    test('beyond twenty a second are only said to be there', async () => {
      watched = new Set(['comp_a']);
      await live.tick();
      for (let n = 0; n < 21; n += 1) live.announce(settled('comp_a', { number: n }));
      await live.tick();
      expect(published.map(({ attempts, hasMore }) => [attempts.length, hasMore])).toEqual([
        [20, true],
      ]);
    });

    test('say what became of the delivery', async () => {
      watched = new Set(['comp_a']);
      await live.tick();
      const outcome = 'http_4xx';
      live.announce(settled('comp_a', { outcome }, { cancelReason: 'webhook_deleted' }));
      live.announce(settled('comp_a', { outcome, trigger: 'resend' }));
      await live.tick();
      const [news] = published;
      expect(news?.attempts.map(({ status }) => status)).toEqual(['cancelled', undefined]);
    });

    test('are announced to nobody while Redis is away', async () => {
      watched = new Set(['comp_a']);
      await live.tick();
      isAway = true;
      await live.tick();
      live.announce(settled('comp_a'));
      await live.tick();
      expect(published).toEqual([]);
    });
  });
});
