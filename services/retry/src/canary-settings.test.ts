import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { canarySettings, readCanary } from './canary-settings.ts';

const settings = z.object(canarySettings);
const all = {
  CANARY_API_KEY: 'key',
  CANARY_GATEWAY_URL: 'https://api.example.com/',
  CANARY_RECEIVER_URL: 'https://canary.example.com/',
};

describe('the settings of the canary', () => {
  test('leave it off when none is set', () => {
    expect(readCanary(settings.parse({}))).toBeNull();
  });

  test('turn it on, every ten seconds', () => {
    const config = settings.parse(all);
    expect(config).toMatchObject({ CANARY_INTERVAL: 10_000, CANARY_PORT: 9_113 });
    expect(readCanary(config)).toEqual({
      apiKey: 'key',
      gatewayUrl: 'https://api.example.com',
      receiverUrl: 'https://canary.example.com/',
    });
  });

  test('name what is missing when only a part is set', () => {
    expect(() => readCanary({ CANARY_API_KEY: 'key' })).toThrow(
      'also needs CANARY_GATEWAY_URL and CANARY_RECEIVER_URL',
    );
  });

  test.each([
    ['CANARY_GATEWAY_URL', 'api.example.com'],
    ['CANARY_RECEIVER_URL', 'ftp://canary.example.com'],
    ['CANARY_INTERVAL', '10ms'],
    ['CANARY_PORT', '70000'],
  ])('refuse %s=%s', (name, value) => {
    expect(settings.safeParse({ ...all, [name]: value }).success).toBe(false);
  });
});
