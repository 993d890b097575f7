import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { listenForLiveAttempts, type LiveNews } from './live-attempts.ts';

test.each(['', '{', 'null', '[]', '{}', '{"companyId":"c","attempts":[1],"hasMore":false}'])(
  'A gateway drops %j on the channel of news, logs it, and goes on',
  (text) => {
    // The one event of a client of 200 that hearing uses.
    const redis = new EventEmitter() as unknown as Redis;
    const heard: LiveNews[] = [];
    let warnings = 0;
    listenForLiveAttempts(redis, 'p:', {
      onNews: (news) => heard.push(news),
      logger: { warn: () => (warnings += 1) },
    });
    const news = { companyId: 'comp_1', attempts: [], hasMore: true };
    redis.emit('message', 'p:live-attempts', text);
    redis.emit('message', 'p:other', text);
    redis.emit('message', 'p:live-attempts', JSON.stringify(news));
    expect(heard).toEqual([news]);
    expect(warnings).toBe(1);
  },
);
