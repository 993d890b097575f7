import { describe, expect, test } from '@jest/globals';
import { canInstall, missingMessage } from './install.ts';
import { MAVEN, MONGOD, REDIS, WINE } from './parts.ts';

describe('what is missing on a machine', () => {
  test('is told all at once, each with the command that installs it', () => {
    const message = missingMessage([MAVEN, REDIS], { manager: 'apt', isRoot: false });
    expect(message).toContain(
      'mvn, which downloads Kafka: sudo apt-get install --no-install-recommends maven',
    );
    expect(message).toContain('sudo apt-get install --no-install-recommends redis-server');
  });

  test('has a way out on a machine without a known package manager', () => {
    const message = missingMessage([WINE], { manager: undefined, isRoot: true });
    expect(message).toContain('install it so that it is on PATH');
    expect(message).toContain('KAFKA_BROKERS, MONGODB_URL and REDIS_URL');
  });

  test('is installed only by root, with apt-get, and when all of it is packaged', () => {
    expect(canInstall([MAVEN, WINE], { manager: 'apt', isRoot: true })).toBe(true);
    expect(canInstall([MAVEN], { manager: 'apt', isRoot: false })).toBe(false);
    expect(canInstall([MAVEN], { manager: 'brew', isRoot: true })).toBe(false);
    expect(canInstall([MAVEN, MONGOD], { manager: 'apt', isRoot: true })).toBe(false);
  });
});
