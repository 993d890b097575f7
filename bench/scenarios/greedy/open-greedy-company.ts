import { requiredAt } from '@posthorn/domain/required.ts';
import { createGatewayClient } from '../../load/gateway-client.ts';
import type { Bench } from '../../scenario.ts';
import type { AttackOrder } from './attack.ts';

/** 8 KiB of custom headers and 11 kB of event types: 21 kB for each webhook in a list. */
const WIDEST = {
  customHeaders: ['X-Wide-1', 'X-Wide-2'].map((key) => ({ key, value: 'v'.repeat(3_900) })),
  eventTypes: Array.from({ length: 100 }, (_, n) => `t${n}.${'e'.repeat(110)}`),
};

/** Creates the company with an app of so many webhooks. Half of them get every message to the app. */
export async function openGreedyCompany(
  { stack, signal }: Bench,
  webhooks: number,
): Promise<AttackOrder> {
  const { baseUrl, apiKey } = await stack.createCompany('Greedy');
  const client = createGatewayClient({ baseUrl, apiKey });
  const appId = await client.createApp();
  const urls = Array.from({ length: webhooks }, (_, n) => `http://127.0.0.1:19999/${n}`);
  const fieldsOf = (n: number): object => {
    return n % 2 === 0 ? WIDEST : { customHeaders: WIDEST.customHeaders };
  };
  const ids = await client.createWebhooks(appId, urls, signal, fieldsOf);
  await client.close();
  return { baseUrl, apiKey, appId, webhookId: requiredAt(ids, 1, 'webhook') };
}
