import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { Posthorn } from '@posthorn/client';
import { requiredAt } from '@posthorn/domain/required.ts';
import { Agent, request } from 'undici';
import { NODE_FLAGS } from '../../../tools/local-stack/supervisor/services.ts';
import { createGatewayClient, type GatewayClient } from '../../load/gateway-client.ts';
import { openLoop } from '../../load/loops.ts';
import { type Percentiles, percentilesOf } from '../../measure/figures.ts';
import { watchSpending } from '../../measure/spending.ts';
import { atMost, ratio, type Table } from '../../report/report.ts';
import { type Bench, defineScenario } from '../../scenario.ts';
import { warmUp } from '../flows.ts';
import type { AttackOrder, AttackReport } from './attack.ts';

/** The heap of the gateway, in MiB: one key must not be able to stop it. */
const HEAP_MIB = 256;

export const greedy = defineScenario({
  summary: 'ordinary requests of a company beside one that does the worst the API allows',
  serviceFlags: [`--max-old-space-size=${HEAP_MIB}`],
  options: {
    warmup: { default: 20, meaning: 'seconds of closed loop before the measurements' },
    seconds: { default: 60, meaning: 'seconds of each phase' },
    webhooks: { default: 300, meaning: 'webhooks of the greedy company, as wide as they can be' },
    targets: { default: 10_000, meaning: 'webhooks of its app with most targets (the quotas)' },
  },
  async run(bench, { warmup, seconds, webhooks, targets }) {
    const { webhookIds, load } = await bench.openEndpoints({ count: 1 });
    const order = await openGreedyCompany(bench, { wide: webhooks, targets });
    await warmUp(bench, load, warmup);
    // On a cluster they have cores of their own; here they would compete with the gateway.
    await Promise.all([bench.stack.stopService('dispatcher'), bench.stack.stopService('retry')]);
    const probe = (name: string) =>
      sendOrdinary(bench, requiredAt(webhookIds, 0, 'webhook'), { name, seconds });
    const alone = await probe('alone');
    const attack = startAttack(order);
    await wait(2_000);
    const beside = await probe('beside the greedy company');
    const report = await attack.end();
    const after = await probe('alone again');
    return {
      phases: [],
      goals: Object.entries(alone).flatMap(([name, one]) =>
        (['p50', 'p99'] as const).map((of) =>
          atMost(`${name}: ${of}, beside ÷ alone`, 2, '×', ratio(beside[name]?.[of], one[of])),
        ),
      ),
      tables: [
        responseTable({ alone, beside, after }),
        { title: 'Responses to the greedy company, by status', rows: report, notes: [] },
      ],
    };
  },
});

/** The responses to ordinary requests, by phase. */
export type Ordinary = Awaited<ReturnType<typeof sendOrdinary>>;

export function responseTable(phases: Readonly<Record<string, Ordinary>>): Table {
  const rows = Object.entries(phases).flatMap(([phase, figures]) =>
    Object.entries(figures).map(([name, shown]) => [`${phase}: ${name}`, shown] as const),
  );
  return { title: 'Responses, ms', rows: Object.fromEntries(rows), notes: [] };
}

const RATE_PER_SECOND = 20;

/**
 * Sends each of three ordinary requests 20 times a second, whether responses come or not. Latencies count from when each was
 * due, those of refused ones too.
 */
export async function sendOrdinary(
  { stack: { credentials }, signal, log, usage }: Bench,
  webhookId: string,
  { name: phase, seconds }: { name: string; seconds: number },
): Promise<Record<string, Percentiles & { refused: string }>> {
  log(`Measuring: ${phase}`);
  const { baseUrl, apiKey } = credentials;
  const dispatcher = new Agent({ connections: 100 });
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const get = (path: string) => ({ method: 'GET', path, body: null, status: '200' }) as const;
  const body = JSON.stringify({ webhookId, payload: { text: 'x'.repeat(1_000) } });
  const requests = {
    'read a webhook': get(`/webhooks/${webhookId}`),
    'send a message': { method: 'POST', path: '/webhook-messages', body, status: '202' },
    'list webhooks': get('/webhooks'),
  } as const;
  const endSpending = watchSpending(usage);
  const measured = Object.entries(requests).map(async ([name, { path, status, ...rest }]) => {
    const send = async () => {
      try {
        const response = await request(`${baseUrl}${path}`, { dispatcher, headers, ...rest });
        await response.body.dump();
        return { id: String(response.statusCode) };
      } catch {
        return { id: 'no response' };
      }
    };
    const loop = { ratePerSecond: RATE_PER_SECOND, seconds };
    const { sent } = await openLoop({ send, endpoints: 1, signal }, loop);
    const others = Map.groupBy(sent, ({ id }) => id);
    others.delete(status);
    const refused = [...others].map(([id, all]) => `${all.length} × ${id}`).join(', ');
    const tookMs = sent.map(({ acceptedAtMs, intendedAtMs }) => acceptedAtMs - intendedAtMs);
    return [name, { ...percentilesOf(tookMs), refused }] as const;
  });
  const figures = Object.fromEntries(await Promise.all(measured));
  const used = Object.entries(endSpending(0).parts).map(
    ([part, { cpuSeconds, residentMiB }]) => `${part} ${cpuSeconds} s ${residentMiB} MiB`,
  );
  log(`  CPU and resident memory: ${used.join(', ')}`);
  await dispatcher.close();
  return figures;
}

function startAttack(order: AttackOrder) {
  const program = join(import.meta.dirname, 'attack.ts');
  const child = spawn(process.execPath, [...NODE_FLAGS, program, JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const output = text(child.stdout);
  return {
    async end(): Promise<AttackReport> {
      child.stdin.end();
      await exited;
      return JSON.parse(await output) as AttackReport;
    },
  };
}

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
interface GreedyWebhooks {
  /** As wide as they can be. Half of them get every message to their app. */
  wide: number;
  /** Of one app; a message to it goes to all. */
  targets: number;
}

/** Creates the company with its apps and webhooks, and with deliveries that a resend sends again. */
async function openGreedyCompany(
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
  const failedWebhookIds = await failDeliveries(client, new Posthorn({ baseUrl, apiKey }), signal);
  await client.close();
  const webhookId = requiredAt(ids, 1, 'webhook');
  return { baseUrl, companyId, apiKey, appId, webhookId, manyTargetsAppId, failedWebhookIds };
}

const urlsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `http://127.0.0.1:19999/${name}/${n}`);

/** A delivery to a disabled webhook is cancelled at once, and sent again by a resend once it is enabled. */
async function failDeliveries(
  client: GatewayClient,
  { webhooks }: Posthorn,
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
  for (const id of ids) await webhooks.update(id, { disabled: false });
  return ids;
}
