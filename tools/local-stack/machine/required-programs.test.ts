import { expect, test, describe } from '@jest/globals';
import {
  majorOf,
  canInstall,
  missingMessage,
  MAVEN,
  MONGOD,
  REDIS,
  WINE,
} from './required-programs.ts';

test.each([
  ['    java.specification.version = 17\n', 17],
  ['    java.specification.version = 1.8\n', 1],
  ['null', 0],
])('the Java version in %j is %i', (settings, major) => {
  expect(majorOf(settings)).toBe(major);
});

describe('missing programs', () => {
  test('are listed in one message, each with the command that installs it', () => {
    const message = missingMessage([MAVEN, REDIS], { manager: 'apt', isRoot: false });
    expect(message).toContain(
      'mvn, which downloads Kafka: sudo apt-get install --no-install-recommends maven',
    );
    expect(message).toContain('sudo apt-get install --no-install-recommends redis-server');
  });

  test('without a known package manager, the message suggests PATH or the addresses of running services', () => {
    const message = missingMessage([WINE], { manager: undefined, isRoot: true });
    expect(message).toContain('install it and add it to PATH');
    expect(message).toContain('KAFKA_BROKERS, MONGODB_URL and REDIS_URL');
  });

  test('are installed only by root, with apt-get, if there is a package for each of them', () => {
    expect(canInstall([MAVEN, WINE], { manager: 'apt', isRoot: true })).toBe(true);
    expect(canInstall([MAVEN], { manager: 'apt', isRoot: false })).toBe(false);
    expect(canInstall([MAVEN], { manager: 'brew', isRoot: true })).toBe(false);
    expect(canInstall([MAVEN, MONGOD], { manager: 'apt', isRoot: true })).toBe(false);
  });
});
