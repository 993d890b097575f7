import { Posthorn } from '@posthorn/client';
import { requiredAt } from '@posthorn/domain/required.ts';
import { createGatewayClient } from '../../load/gateway-client.ts';
import { openLoop, type Sending } from '../../load/loops.ts';
import { storeWebhooks } from '../../load/population.ts';
import { startReceivers } from '../../load/receivers.ts';
import { percentilesOf } from '../../measure/figures.ts';
import { atMost, ratio } from '../../report/report.ts';
import { type Bench, defineScenario } from '../../scenario.ts';
import { openStores } from '../../stack/open-stores.ts';
import { warmUp } from '../flows.ts';
import { responseTable, sendOrdinary } from './greedy.ts';

const ONE_A_SECOND = 1;

interface WideApp {
  state: 'disabled' | 'enabled';
  /** How many times as long as alone the slowest responses to others may take. */
  mostTimes: number;
}

/** Measures others beside messages to an app with as many webhooks as the quotas allow. Their receiver answers at once. */
const besideWideApp = ({ state, mostTimes }: WideApp) =>
  defineScenario({
    summary: `ordinary requests of a company beside a message a second to ${state} webhooks of another one`,
    options: {
      warmup: { default: 20, meaning: 'seconds of closed loop before the measurements' },
      seconds: { default: 30, meaning: 'seconds of each phase' },
      targets: { default: 10_000, meaning: `${state} webhooks of the app (the quotas)` },
    },
    async run(bench, { warmup, seconds, targets }) {
      const { webhookIds, load } = await bench.openEndpoints({ count: 1 });
      const receivers = await startReceivers({
        endpoints: targets,
        servers: 1,
        behaviourOf: () => 'answers',
        note: () => undefined,
      });
      const sendToWide = await openWideApp(bench, state, receivers.urls);
      await warmUp(bench, load, warmup);
      const webhookId = requiredAt(webhookIds, 0, 'webhook');
      const probe = (name: string) => sendOrdinary(bench, webhookId, { name, seconds });
      const alone = await probe('alone');
      const [beside, wide] = await Promise.all([
        probe(`beside messages to ${state} webhooks`),
        sendToWide(seconds),
      ]);
      const after = await probe('after them');
      receivers.close();
      return {
        phases: [],
        goals: Object.entries(alone).map(([name, { p99 }]) =>
          atMost(`${name}: p99, beside ÷ alone`, mostTimes, '×', ratio(beside[name]?.p99, p99)),
        ),
        tables: [
          responseTable({ alone, beside, after }),
          { title: `Messages to ${state} webhooks, ms`, rows: { wide }, notes: [] },
        ],
        isComplete: Object.values(beside).every(({ refused }) => refused === ''),
      };
    },
  });

export const disabled = besideWideApp({ state: 'disabled', mostTimes: 1.3 });
export const wide = besideWideApp({ state: 'enabled', mostTimes: 5 });

/** Creates a company with such an app. Returns what sends a message a second to it for so long. */
async function openWideApp(
  { stack, signal }: Bench,
  state: WideApp['state'],
  urls: readonly string[],
) {
  const { baseUrl, companyId, apiKey } = await stack.createCompany('Wide');
  const api = new Posthorn({ baseUrl, apiKey });
  const { id: projectId } = await api.projects.create({ name: 'wide' });
  const { id: appId } = await api.apps.create({ name: 'wide', projectId });
  const stores = await openStores(stack.addresses);
  const fields = { companyId, projectId, appId, disabled: state === 'disabled' };
  await storeWebhooks(
    urls.map((url) => ({ ...fields, url })),
    { db: stores.mongo.db, vault: stores.vault },
  );
  await stores.close();
  const client = createGatewayClient({ baseUrl, apiKey });
  const send = (): Promise<Sending> => client.sendToAppAs(apiKey, appId);
  return async (seconds: number) => {
    const loop = { ratePerSecond: ONE_A_SECOND, seconds };
    const { sent, refused } = await openLoop({ send, endpoints: 1, signal }, loop);
    const tookMs = sent.map(({ acceptedAtMs, intendedAtMs }) => acceptedAtMs - intendedAtMs);
    return { ...percentilesOf(tookMs), refused: JSON.stringify(refused) };
  };
}
