import { describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS } from '../../../../test/support/stores/tested-redis.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createLogger } from '../service/logger.ts';
import { createLiveAttempts, listenForLiveAttempts, type LiveNews } from './live-attempts.ts';

const logger = createLogger('test', 'silent');
const ATTEMPT = {
  messageId: 'msg_1',
  deliveryId: 'dlv_1',
  webhookId: 'wh_1',
  outcome: 'success' as const,
  status: 'delivered' as const,
  attemptNumber: 1,
  at: '2026-11-24T06:00:00.000Z',
};

describe.each(REDIS_KINDS)('news of attempts in %s', (_kind, open) => {
  const { REDIS_PREFIX } = createNamespace();
  const store = duringTests(open, ({ stop }) => stop());
  let nowMs = 1_000_000;

  it('are wanted for the companies that are watched, until that ends', async () => {
    const live = createLiveAttempts(store.redis, REDIS_PREFIX, () => nowMs);
    expect(await live.readWatched()).toEqual(new Set());
    await live.watch(['comp_1', 'comp_2'], 1_000);
    nowMs += 500;
    await live.watch(['comp_2'], 1_000);
    expect(await live.readWatched()).toEqual(new Set(['comp_1', 'comp_2']));
    nowMs += 600;
    expect(await live.readWatched()).toEqual(new Set(['comp_2']));
    await live.watch([], 1_000);
  });

  it('reach every process that listens', async () => {
    const live = createLiveAttempts(store.redis, REDIS_PREFIX, () => nowMs);
    const heard: LiveNews[][] = [[], []];
    for (const news of heard) {
      const onNews = (each: LiveNews) => news.push(each);
      listenForLiveAttempts(store.connect(), REDIS_PREFIX, { onNews, logger });
    }
    const news = { companyId: 'comp_1', attempts: [ATTEMPT], hasMore: true };
    await eventually('the news', () => {
      live.publish(news);
      return heard.every(([first]) => first);
    });
    expect(heard.map(([first]) => first)).toEqual([news, news]);
  });
});
