import { expect, it, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createLogger } from '../../service/logger.ts';
import { createKafkaClient } from '../connect.ts';
import { PATCHED_VERSION } from './patch-kafkajs.ts';

const require = createRequire(import.meta.url);

it('kafkajs is the release that the patches mend', () => {
  const { version } = require('kafkajs/package.json') as { version: string };
  expect(version).toBe(PATCHED_VERSION);
});

test.each([
  ['consumer/consumerGroup.js', 'prototype.joinAndSync'],
  ['consumer/consumerGroup.js', 'prototype.heartbeat'],
  ['consumer/consumerGroup.js', 'prototype.fetch'],
  ['cluster/index.js', 'prototype.committedOffsets'],
  ['consumer/offsetManager/index.js', 'prototype.setDefaultOffset'],
  ['network/requestQueue/index.js', 'prototype.scheduleCheckPendingRequests'],
  ['protocol/requests/fetch/index.js', 'protocol'],
  ['protocol/requests/produce/index.js', 'protocol'],
  ['protocol/encoder.js', 'nextPowerOfTwo'],
  ['protocol/encoder.js', 'prototype.writeUVarInt'],
  ['broker/index.js', 'prototype.produce'],
])('a client is created with a patch of %s: %s', (file, place) => {
  createKafkaClient('test', { brokers: ['127.0.0.1:1'] }, createLogger('test', 'silent'));
  const path = require.resolve(`kafkajs/src/${file}`);
  let found: unknown = require(path);
  for (const step of place.split('.')) found = (found as Record<string, unknown>)[step];
  expect(typeof found).toBe('function');
  expect(readFileSync(path, 'utf8')).not.toContain(String(found));
});
