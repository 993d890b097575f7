import { requiredAt } from '@posthorn/domain/required.ts';
import { request } from 'undici';
import { createGatewayClient, type GatewayClient } from '../../load/gateway-client.ts';
import type { Bench } from '../../scenario.ts';
import type { AttackOrder } from './attack.ts';

/** 8 KiB of custom headers and 11 kB of event types: 21 kB for each webhook in a list. */
const WIDEST = {
  customHeaders: ['X-Wide-1', 'X-Wide-2'].map((key) => ({ key, value: 'v'.repeat(3_900) })),
  eventTypes: Array.from({ length: 100 }, (_, n) => `t${n}.${'e'.repeat(110)}`),
};

/** As wide as they can be: a description of 1,000 characters of three bytes. A list shows 1,000 at most. */
const WIDE_PROJECTS = 1_000;
const WIDE_PROJECT = { name: 'wide', description: '€'.repeat(1_000) };

const FAILED_WEBHOOKS = 50;
const FAILED_DELIVERIES_EACH = 20;

/** How many webhooks the company has. */
export interface GreedyWebhooks {
  /** As wide as they can be. Half of them get every message to their app. */
  wide: number;
  /** Of one app; a message to it goes to all. */
  targets: number;
}

/** Creates the company with its apps and webhooks, and with deliveries that a resend sends again. */
export async function openGreedyCompany(
  { stack, signal }: Bench,
  { wide, targets }: GreedyWebhooks,
): Promise<AttackOrder> {
  const { baseUrl, companyId, apiKey } = await stack.createCompany('Greedy');
  const client = createGatewayClient({ baseUrl, apiKey });
  const appId = await client.createApp();
  const ids = await client.createWebhooks(appId, urlsOf('wide', wide), signal, (n) => {
    return n % 2 === 0 ? WIDEST : { customHeaders: WIDEST.customHeaders };
  });
  for (let n = 0; n < WIDE_PROJECTS && !signal.aborted; n += 1) {
    await client.createProject(WIDE_PROJECT);
  }
  const manyTargetsAppId = await client.createApp();
  await client.createWebhooks(manyTargetsAppId, urlsOf('target', targets), signal);
  const failedWebhookIds = await failDeliveries(client, { baseUrl, apiKey }, signal);
  await client.close();
  const webhookId = requiredAt(ids, 1, 'webhook');
  const targetsOfAttack = { appId, webhookId, manyTargetsAppId, failedWebhookIds };
  return { baseUrl, companyId, apiKey, ...targetsOfAttack };
}

const urlsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `http://127.0.0.1:19999/${name}/${n}`);

/** A delivery to a disabled webhook is cancelled at once, and sent again by a resend once it is enabled. */
async function failDeliveries(
  client: GatewayClient,
  { baseUrl, apiKey }: Pick<AttackOrder, 'baseUrl' | 'apiKey'>,
  signal: AbortSignal,
): Promise<string[]> {
  const appId = await client.createApp();
  const urls = urlsOf('failed', FAILED_WEBHOOKS);
  const ids = await client.createWebhooks(appId, urls, signal, () => ({ disabled: true }));
  for (let n = 0; n < FAILED_DELIVERIES_EACH; n += 1) {
    const sent = await Promise.all(ids.map((id) => client.sendToWebhook(id)));
    const refused = sent.find((each) => 'refusedWith' in each);
    if (refused) throw new Error(`A message to a disabled webhook: ${JSON.stringify(refused)}`);
  }
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const body = JSON.stringify({ disabled: false });
  for (const id of ids) {
    const response = await request(`${baseUrl}/webhooks/${id}`, { method: 'PUT', headers, body });
    await response.body.dump();
    if (response.statusCode !== 200)
      throw new Error(`Enabling a webhook responded with ${response.statusCode}.`);
  }
  return ids;
}
