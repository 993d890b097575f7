import { describe, expect, test } from '@jest/globals';
import {
  secretFromBytes,
  standardKey,
  standardSignature,
} from '@posthorn/domain/request/signature.ts';
import { Registry } from 'prom-client';
import {
  type ArrivedCanary,
  type CanaryApi,
  createCanary,
  createCanaryMetrics,
  readCanary,
} from './canary.ts';
import { canarySettings } from './config.ts';

const secret = secretFromBytes(Buffer.alloc(32, 7));
const RECEIVER = 'https://canary.example.com/';

/** A canary whose gateway takes messages unless `fails` throws. */
function openCanary(fails: Partial<Record<keyof CanaryApi, () => void>> = {}) {
  const clock = { ms: 1_000_000 };
  const registry = new Registry();
  const metrics = createCanaryMetrics(registry, () => clock.ms);
  const sent: { webhookId: string; payload: object }[] = [];
  const opened: string[] = [];
  const api: CanaryApi = {
    async openWebhook(url) {
      await Promise.resolve();
      fails.openWebhook?.();
      opened.push(url);
      return { id: 'wh_1', secret };
    },
    async send(webhookId, payload) {
      await Promise.resolve();
      fails.send?.();
      sent.push({ webhookId, payload });
    },
  };
  const deps = { api, receiverUrl: RECEIVER, metrics, nowMs: () => clock.ms };
  const { send, receive } = createCanary(deps);
  const valueOf = async (name: string, labels: object = {}): Promise<number | undefined> => {
    const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
    return values.find((each) => JSON.stringify(each.labels) === JSON.stringify(labels))?.value;
  };
  return { clock, sent, opened, send, receive, valueOf };
}

function arrived(payload: object, key = secret): ArrivedCanary {
  const signed = {
    messageId: 'msg_1',
    timestampSeconds: 1_000,
    payload: Buffer.from(JSON.stringify(payload)),
  };
  const signature = standardSignature(standardKey(key), signed);
  return { messageId: 'msg_1', timestamp: '1000', signature, payload: signed.payload };
}

const AGE = 'posthorn_canary_age_seconds';
const failuresOf = ({ valueOf }: ReturnType<typeof openCanary>, reason: string) =>
  valueOf('posthorn_canary_failures_total', { reason });

describe('a canary', () => {
  test('opens its webhook once, and sends when it was sent', async () => {
    const { send, sent, opened } = openCanary();
    await send();
    await send();
    expect(opened).toEqual([RECEIVER]);
    const message = { webhookId: 'wh_1', payload: { sentAtMs: 1_000_000 } };
    expect(sent).toEqual([message, message]);
  });

  test('gets older until a message arrives, from its start on', async () => {
    const { send, receive, clock, valueOf } = openCanary();
    await send();
    clock.ms += 30_000;
    expect(await valueOf(AGE)).toBe(30);
    expect(receive(arrived({ sentAtMs: 1_028_000 }))).toBe(204);
    expect(await valueOf(AGE)).toBe(2);
    // An older one that was overtaken says nothing new.
    expect(receive(arrived({ sentAtMs: 1_001_000 }))).toBe(204);
    expect(await valueOf(AGE)).toBe(2);
  });

  test('counts what the gateway does not take, and looks for its webhook again', async () => {
    let isAway = true;
    const canary = openCanary({
      send() {
        if (isAway) throw new Error('503');
      },
    });
    await expect(canary.send()).rejects.toThrow('503');
    expect(await failuresOf(canary, 'not_accepted')).toBe(1);
    isAway = false;
    await canary.send();
    expect(canary.opened).toHaveLength(2);
  });

  test('counts that it cannot set up its webhook', async () => {
    const canary = openCanary({
      openWebhook() {
        throw new Error('401');
      },
    });
    await expect(canary.send()).rejects.toThrow('401');
    expect(await failuresOf(canary, 'setup')).toBe(1);
  });
});

describe('what arrives', () => {
  test('is to come again before the webhook is known', () => {
    expect(openCanary().receive(arrived({ sentAtMs: 1 }))).toBe(503);
  });

  test('is refused with a signature of somebody else, and the secret is read again', async () => {
    const canary = openCanary();
    await canary.send();
    const other = secretFromBytes(Buffer.alloc(32, 8));
    expect(canary.receive(arrived({ sentAtMs: 1_000_000 }, other))).toBe(401);
    expect(await failuresOf(canary, 'wrong_signature')).toBe(1);
    // Until it is read, the known one counts: nobody can silence the canary with wrong signatures.
    expect(canary.receive(arrived({ sentAtMs: 1_000_000 }))).toBe(204);
    await canary.send();
    expect(canary.opened).toHaveLength(2);
  });

  test('is refused without the time when it was sent', async () => {
    const canary = openCanary();
    await canary.send();
    expect(canary.receive(arrived({ n: 1 }))).toBe(400);
    expect(await failuresOf(canary, 'unreadable')).toBe(1);
  });
});

const all = {
  CANARY_API_KEY: 'key',
  CANARY_GATEWAY_URL: 'https://api.example.com/',
  CANARY_RECEIVER_URL: 'https://canary.example.com/',
};

describe('the settings of the canary', () => {
  test('leave it off when none is set', () => {
    expect(readCanary(canarySettings.parse({}))).toBeNull();
  });

  test('turn it on, every ten seconds', () => {
    const config = canarySettings.parse(all);
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
    expect(canarySettings.safeParse({ ...all, [name]: value }).success).toBe(false);
  });
});
