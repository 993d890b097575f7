import { beforeEach, describe, expect, test } from '@jest/globals';
import { holdSourceOf } from '@posthorn/domain/waiting.ts';
import type { Redis } from 'ioredis';
import { EventEmitter } from 'node:events';
import { announce, listenForInvalidations, type Invalidation } from './invalidations.ts';

/** As much of Redis as publishes and subscribes. */
class FakeRedis extends EventEmitter {
  readonly channels: string[] = [];
  isUp = true;
  status = 'connecting';
  heard: [string, string][] = [];
  publish(channel: string, text: string): Promise<number> {
    if (!this.isUp) return Promise.reject(new Error('Redis is away'));
    this.heard.push([channel, text]);
    return Promise.resolve(1);
  }
  subscribe(channel: string): Promise<number> {
    if (!this.isUp) return Promise.reject(new Error('Redis is away'));
    this.channels.push(channel);
    return Promise.resolve(1);
  }
}

let redis: FakeRedis;
let changes: Invalidation[] = [];
// The two events and one command of a client of 200 that listening uses.
const client = () => redis as unknown as Redis;

beforeEach(() => {
  [redis, changes] = [new FakeRedis(), []];
  listenForInvalidations(client(), 'posthorn:', (change) => changes.push(change));
});

describe('an invalidation', () => {
  test('arrives as it was announced', async () => {
    const announced = [
      { companyId: 'comp_1', id: 'wh_1' },
      { companyId: 'comp_1', id: 'wh_2' },
      { companyId: 'comp_1', id: holdSourceOf('app_1') },
    ];
    await announce(client(), 'posthorn:', announced);
    for (const [channel, text] of redis.heard) redis.emit('message', channel, text);
    expect(changes).toEqual(announced);
    expect(redis.heard).toHaveLength(1);
    expect(redis.heard[0]?.[0]).toBe('posthorn:invalidations');
  });

  test.each(['', '/', 'comp_1', 'comp_1/', '/wh_1'])('is ignored when its text is %j', (text) => {
    redis.emit('message', 'posthorn:invalidations', text);
    expect(changes).toEqual([]);
  });

  test('is lost without an error while Redis is away', async () => {
    redis.isUp = false;
    await expect(announce(client(), 'p:', [{ companyId: 'c', id: 'w' }])).resolves.toBeUndefined();
  });
});

describe('a listener', () => {
  test('subscribes again after each connection', async () => {
    redis.emit('ready');
    redis.emit('ready');
    await new Promise(setImmediate);
    expect(redis.channels).toEqual(['posthorn:invalidations', 'posthorn:invalidations']);
  });

  test('subscribes at once on a connection that is ready already', async () => {
    redis = new FakeRedis();
    redis.status = 'ready';
    listenForInvalidations(client(), 'p:', () => undefined);
    await new Promise(setImmediate);
    expect(redis.channels).toEqual(['p:invalidations']);
  });
});
