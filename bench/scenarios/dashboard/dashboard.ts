import { requiredAt } from '@posthorn/domain/required.ts';
import { startBrowser } from '../../../test/support/browser/browser.ts';
import { signIn } from '../../../test/support/browser/sign-in.ts';
import type { Goal } from '../../figures/goals.ts';
import { percentilesOf, type Percentiles } from '../../figures/percentiles.ts';
import { closedLoop } from '../../load/loops.ts';
import { defineScenario } from '../../scenario.ts';
import { measureVisit } from './measure-visit.ts';

/** Page → its address, and what is there once its data are shown. */
const PAGES = {
  overview: { path: '', shown: 'main dl dd' },
  messages: { path: 'messages', shown: 'main tbody tr' },
  webhooks: { path: 'webhooks', shown: 'main tbody tr' },
} as const;

/** What a first visit may take on a machine that is four times as slow. */
const MOST_MS = 1_500;

export const dashboard = defineScenario({
  summary:
    'how long the pages of the dashboard take on a slow machine, until one can work with them',
  hasDashboard: true,
  options: {
    cpu: { default: 4, meaning: 'how many times as slow the browser is made' },
    visits: { default: 15, meaning: 'first visits to each page, without what the browser kept' },
    webhooks: { default: 200, meaning: 'webhooks of the company' },
    seconds: { default: 5, meaning: 'seconds of messages before' },
  },
  async run(bench, { cpu, visits, webhooks, seconds }) {
    const load = await bench.openEndpoints({ count: webhooks, ports: 1 });
    requiredAt(load.webhookIds, 0, 'webhook');
    await closedLoop(load, { connections: 4, seconds });
    const { signal, log } = bench;
    const { credentials } = bench.stack;
    const browser = await startBrowser(new URL(credentials.baseUrl).origin);
    try {
      await signIn(browser.page, credentials);
      const measured: [string, Percentiles][] = [];
      for (const [name, { path, shown }] of Object.entries(PAGES)) {
        log(`Measuring: ${name}`);
        const times: number[] = [];
        for (let n = 0; n < visits && !signal.aborted; n += 1) {
          const url = `${credentials.baseUrl}/dashboard/${path}`;
          times.push(await measureVisit(browser.page, { url, shown, cpu }));
        }
        measured.push([name, percentilesOf(times)]);
      }
      return { phases: [], goals: measured.flatMap(goalsOf), tables: [tableOf(measured, cpu)] };
    } finally {
      await browser.close();
    }
  },
});

function goalsOf([name, { p50, max }]: [string, Percentiles]): Goal[] {
  return [
    { name: `${name}: interactive, median`, unit: 'ms', atMost: MOST_MS, measured: p50 },
    { name: `${name}: interactive, slowest`, unit: 'ms', atMost: MOST_MS, measured: max },
  ];
}

function tableOf(measured: readonly [string, Percentiles][], cpu: number) {
  const rows = measured.map(([name, { p50, p90, max }]) => [name, { p50, p90, max }] as const);
  return {
    title: `First visits with a CPU ${cpu} times as slow, in ms`,
    rows: Object.fromEntries(rows),
    notes: [
      'From the beginning of the navigation until the data are shown and no task has taken 50 ms for half a second.',
    ],
  };
}
