import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { Posthorn } from '@posthorn/client';
import { requiredAt } from '@posthorn/domain/required.ts';
import { NODE_FLAGS } from '../../../tools/local-stack/supervisor/services.ts';
import { rounded } from '../../measure/figures.ts';
import type { Goal, Table } from '../../report/report.ts';
import { type Bench, defineScenario } from '../../scenario.ts';
import { warmUp } from '../warm-up.ts';
import type { AttackOrder, AttackReport } from './attack.ts';
import { createProbe, type ProbeResult } from './probe.ts';
import { createGatewayClient, type GatewayClient } from '../../load/gateway-client.ts';

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
    const { webhookIds } = await bench.openTargets({ count: 1 });
    const webhookId = requiredAt(webhookIds, 0, 'webhook');
    const { signal } = bench;
    const load = { send: () => bench.client.sendToWebhook(webhookId), endpoints: 1, signal };
    const order = await openGreedyCompany(bench, { wide: webhooks, targets });
    await warmUp(bench, load, { warmup });
    // On a cluster they have cores of their own; here they would compete with the gateway.
    await Promise.all([bench.stack.stopService('dispatcher'), bench.stack.stopService('retry')]);
    const probe = createProbe(bench.stack.credentials, webhookId, bench.signal);
    try {
      const alone = await run(bench, 'alone', () => probe.run(seconds));
      const attack = startAttack(order);
      await wait(2_000);
      const beside = await run(bench, 'beside the greedy company', () => probe.run(seconds));
      const report = await attack.end();
      const after = await run(bench, 'alone again', () => probe.run(seconds));
      return {
        phases: [],
        goals: goalsOf(alone, beside),
        tables: [...tablesOf({ alone, beside, after }), attackTable(report)],
      };
    } finally {
      await probe.close();
    }
  },
});

async function run<T>({ log, usage }: Bench, name: string, phase: () => Promise<T>): Promise<T> {
  log(`Measuring: ${name}`);
  const before = usage.read();
  const result = await phase();
  const after = usage.read();
  const used = Object.entries(after).map(([part, { cpuSeconds, residentBytes }]) => {
    const cpu = rounded(cpuSeconds - (before[part]?.cpuSeconds ?? 0), 1);
    return `${part} ${cpu} s ${Math.round(residentBytes / 2 ** 20)} MiB`;
  });
  log(`  CPU and resident memory: ${used.join(', ')}`);
  return result;
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

function goalsOf(alone: ProbeResult, beside: ProbeResult): Goal[] {
  return Object.keys(alone).flatMap((name) => {
    const ratio = (of: 'p50' | 'p99'): number | null => {
      const [one, other] = [alone[name]?.[of] ?? null, beside[name]?.[of] ?? null];
      return one === null || other === null ? null : rounded(other / one, 2);
    };
    return (['p50', 'p99'] as const).map((of) => {
      return { name: `${name}: ${of}, beside ÷ alone`, unit: '×', atMost: 2, measured: ratio(of) };
    });
  });
}

function tablesOf(phases: Record<string, ProbeResult>): Table[] {
  const rows = Object.entries(phases).flatMap(([phase, result]) =>
    Object.entries(result).map(([name, { p50, p90, p99, max, count, refused }]) => {
      const others = Object.entries(refused).map(([status, n]) => `${n} × ${status}`);
      return [
        `${phase}: ${name}`,
        { count, p50, p90, p99, max, refused: others.join(', ') },
      ] as const;
    }),
  );
  return [{ title: 'Responses, ms', rows: Object.fromEntries(rows), notes: [] }];
}

function attackTable(report: AttackReport): Table {
  return { title: 'Responses to the greedy company, by status', rows: report, notes: [] };
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
  const { webhooks } = new Posthorn({ baseUrl, apiKey });
  for (const id of ids) await webhooks.update(id, { disabled: false });
  return ids;
}
