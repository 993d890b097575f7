import { describe, expect, test } from '@jest/globals';
import { readPort, readSettings, readMode } from './settings.ts';

describe('the settings of the local stack', () => {
  test('have a default for every variable', () => {
    const { mode, gatewayPort, opsPort, issuerPort, backingPorts } = readSettings({});
    expect({ mode, gatewayPort, opsPort, issuerPort }).toEqual({
      mode: undefined,
      gatewayPort: 8080,
      opsPort: 9101,
      issuerPort: 9180,
    });
    expect(backingPorts).toEqual({
      kafka: 19_092,
      kafkaController: 19_093,
      mongodb: 27_117,
      redis: 16_379,
    });
  });

  test.each(['0', '65536', 'abc', '-1', '80.5', ' 80'])('reject %j as a port', (value) => {
    expect(() => readPort({ PORT: value }, 'PORT', 8080)).toThrow(/^PORT must be a port number/);
  });

  test('treat an empty variable as not set', () => {
    expect(readPort({ PORT: '' }, 'PORT', 8080)).toBe(8080);
    expect(readMode({ STACK: '' })).toBeUndefined();
  });

  test('reject an unknown STACK, and say which values are allowed and where to change it', () => {
    expect(() => readMode({ STACK: 'podman' })).toThrow(
      'STACK must be "docker", "native" or not set, but it is "podman". Change it in the environment of this command.',
    );
  });
});
