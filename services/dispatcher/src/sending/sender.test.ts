import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import { createMemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { Registry } from 'prom-client';
import { type Receiver, startReceiver } from '../../../../test/support/receivers/receiver.ts';
import { dispatcherConfig } from '../config.ts';
import { createDispatcherMetrics } from '../metrics.ts';
import { createSender, type Sender } from './sender.ts';

const ENV = {
  KAFKA_BROKERS: 'localhost:9092',
  MONGODB_URL: 'mongodb://localhost/posthorn',
  REDIS_URL: 'redis://localhost',
  ENCRYPTION_KEYS: `k1:${'A'.repeat(43)}=`,
  EGRESS_ALLOW_LOOPBACK: 'true',
  EGRESS_ALLOW_HTTP: 'true',
};

let tokenServer: Receiver;
let sender: Sender;

beforeEach(async () => {
  tokenServer = await startReceiver();
  tokenServer.answerWith((response) => response.writeHead(503).end());
});
afterEach(async () => {
  await sender.stop();
  await tokenServer.close();
});

function open(env: NodeJS.ProcessEnv): void {
  const config = parseConfig('dispatcher', dispatcherConfig, { ...ENV, ...env });
  const registry = new Registry();
  const metrics = createDispatcherMetrics(registry).sender;
  sender = createSender(config, {
    metrics,
    budgets: createMemoryBudgets(registry),
    logger: { warn: () => undefined },
    nowMs: Date.now,
  });
}

/** Asks for the tokens of so many clients. Returns what became of each. */
function ask(clients: number): Promise<(string | undefined)[]> {
  const all = Array.from({ length: clients }, async (_, nth) => {
    const client: OAuth2Client = {
      method: 'oauth2',
      tokenUrl: tokenServer.url,
      clientId: String(nth),
      clientSecret: 's',
      scope: null,
      audience: null,
      clientAuthentication: 'basic',
    };
    return (await sender.tokens.get('comp_a', client))?.answer.kind;
  });
  return Promise.all(all);
}

describe('the token requests of a dispatcher', () => {
  test('token requests to one host are limited by HOST_ATTEMPTS_PER_SECOND, whatever the credentials', async () => {
    open({ HOST_ATTEMPTS_PER_SECOND: '1' });
    expect(await ask(3)).toEqual(['failed', 'later', 'later']);
    expect(tokenServer.received).toHaveLength(1);
  });

  test('have no limit unless one is set', async () => {
    open({});
    expect(await ask(3)).toEqual(['failed', 'failed', 'failed']);
  });
});
