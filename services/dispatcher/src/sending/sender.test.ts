import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import { createMemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createLifecycle, type Lifecycle } from '@posthorn/platform/service/run-service.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { Registry } from 'prom-client';
import { type Receiver, startReceiver } from '../../../../test/support/receivers/receiver.ts';
import { dispatcherConfig } from '../config.ts';
import { openSender, type Sender } from './sender.ts';

const logger = createLogger('test', 'silent');
const ENV = {
  KAFKA_BROKERS: 'localhost:9092',
  MONGODB_URL: 'mongodb://localhost/posthorn',
  REDIS_URL: 'redis://localhost',
  ENCRYPTION_KEYS: `k1:${'A'.repeat(43)}=`,
  EGRESS_ALLOW_LOOPBACK: 'true',
  EGRESS_ALLOW_HTTP: 'true',
};

let tokenServer: Receiver;
let lifecycle: Lifecycle;

beforeEach(async () => {
  lifecycle = createLifecycle(logger, { stopTimeoutMs: 1_000, exit: () => undefined });
  tokenServer = await startReceiver();
  tokenServer.answerWith((response) => response.writeHead(503).end());
});
afterEach(async () => {
  await lifecycle.shutDown('the test is over', 0);
  await tokenServer.close();
});

function open(env: NodeJS.ProcessEnv): Sender {
  const config = parseConfig('dispatcher', dispatcherConfig, { ...ENV, ...env });
  const registry = new Registry();
  return openSender({ config, lifecycle, registry, logger }, createMemoryBudgets(registry));
}

/** Asks for the tokens of so many clients. Returns what became of each. */
function ask({ tokens }: Sender, clients: number): Promise<(string | undefined)[]> {
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
    return (await tokens.get('comp_a', client))?.answer.kind;
  });
  return Promise.all(all);
}

describe('the token requests of a dispatcher', () => {
  test('to one host are limited by HOST_ATTEMPTS_PER_SECOND, whatever the credentials', async () => {
    const sender = open({ HOST_ATTEMPTS_PER_SECOND: '1' });
    expect(await ask(sender, 3)).toEqual(['failed', 'later', 'later']);
    expect(tokenServer.received).toHaveLength(1);
  });

  test('have no limit unless one is set', async () => {
    expect(await ask(open({}), 3)).toEqual(['failed', 'failed', 'failed']);
  });
});
