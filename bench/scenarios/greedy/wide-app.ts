import { requiredAt } from '@posthorn/domain/required.ts';
import { createGatewayClient } from '../../load/gateway-client.ts';
import { openLoop, type Sending } from '../../load/loops.ts';
import { percentilesOf } from '../../measure/figures.ts';
import { atMost, ratio } from '../../report/report.ts';
import { type Bench, defineScenario } from '../../scenario.ts';
import { warmUp } from '../flows.ts';
import { responseTable, sendOrdinary, urlsOf } from './greedy.ts';

const ONE_A_SECOND = 1;

export const disabled = defineScenario({
  summary:
    'ordinary requests of a company beside a message a second to disabled webhooks of another one',
  options: {
    warmup: { default: 20, meaning: 'seconds of closed loop before the measurements' },
    seconds: { default: 30, meaning: 'seconds of each phase' },
    targets: { default: 10_000, meaning: 'disabled webhooks of the app (the quotas)' },
  },
  async run(bench, { warmup, seconds, targets }) {
    const { webhookIds, load } = await bench.openEndpoints({ count: 1 });
    const sendToDisabled = await openDisabled(bench, targets);
    await warmUp(bench, load, warmup);
    const webhookId = requiredAt(webhookIds, 0, 'webhook');
    const probe = (name: string) => sendOrdinary(bench, webhookId, { name, seconds });
    const alone = await probe('alone');
    const [beside, wide] = await Promise.all([
      probe('beside messages to disabled webhooks'),
      sendToDisabled(seconds),
    ]);
    const after = await probe('alone again');
    return {
      phases: [],
      goals: Object.entries(alone).map(([name, { p99 }]) =>
        atMost(`${name}: p99, beside ÷ alone`, 1.3, '×', ratio(beside[name]?.p99, p99)),
      ),
      tables: [
        responseTable({ alone, beside, after }),
        { title: 'Messages to disabled webhooks, ms', rows: { wide }, notes: [] },
      ],
    };
  },
});

/** Creates a company with such an app. Returns what sends a message a second to it for so long. */
async function openDisabled({ stack, signal }: Bench, targets: number) {
  const { baseUrl, apiKey } = await stack.createCompany('Disabled');
  const client = createGatewayClient({ baseUrl, apiKey });
  const appId = await client.createApp();
  await client.createWebhooks(appId, urlsOf('disabled', targets), signal, () => ({
    disabled: true,
  }));
  const send = (): Promise<Sending> => client.sendToAppAs(apiKey, appId);
  return async (seconds: number) => {
    const loop = { ratePerSecond: ONE_A_SECOND, seconds };
    const { sent, refused } = await openLoop({ send, endpoints: 1, signal }, loop);
    const tookMs = sent.map(({ acceptedAtMs, intendedAtMs }) => acceptedAtMs - intendedAtMs);
    return { ...percentilesOf(tookMs), refused: JSON.stringify(refused) };
  };
}
