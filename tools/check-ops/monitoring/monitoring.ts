import { setTimeout as pause } from 'node:timers/promises';
import { inPrometheus } from '../../../deploy/grafana/source/dashboard.ts';
import { DASHBOARDS } from '../../../deploy/grafana/source/dashboards.ts';
import { eventually } from '../../../test/support/time/eventually.ts';
import { PROMETHEUS } from '../prometheus/programs.ts';
import type { OpsCheck } from '../ops-check.ts';
import type { PrometheusServer } from './prometheus-server.ts';
import { withScene, type Scene } from './scene.ts';
import type { StepResult } from './step-result.ts';
import { startTraffic } from './traffic.ts';

/** 20 messages a second: half of them to the endpoint that hangs. */
const EVERY_MS = 50;
/** The longest `for` of a page that a hanging endpoint might set off is two minutes. */
const HANGING_FOR_MS = 200_000;
const RATE_WINDOW = '1m';
/** Fires about endpoints, so it may. */
const ABOUT_ENDPOINTS = 'PosthornManyCircuitsOpen';
const FIRES_WITHIN_MS = 120_000;
const ABOUT_STOPPED_DISPATCHERS = ['PosthornServiceAbsent', 'PosthornGroupWithoutMembers'];

type Progress = (line: string) => void;

export const MONITORING: OpsCheck = {
  name: 'monitoring',
  shows:
    'Every panel has data; one hanging endpoint of 100 alerts nobody; stopped dispatchers do within two minutes.',
  programs: [PROMETHEUS],
  isQuick: false,
  run: async (progress) => {
    const results: StepResult[] = [];
    await withScene(async (scene) => {
      const traffic = startTraffic(scene.posthorn.api, scene.webhookIds, EVERY_MS);
      try {
        results.push(...(await runSteps(scene, progress)));
      } finally {
        results.push(await traffic.stop());
      }
    });
    const problems = results.flatMap(({ problem }) => problem ?? []);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    return results.map(({ saw }) => saw).join(', ');
  },
};

async function runSteps(scene: Scene, progress: Progress): Promise<StepResult[]> {
  await pause(HANGING_FOR_MS);
  await refuseOneMessage(scene);
  return [
    await checkPanels(scene.prometheus),
    await checkSilence(scene.prometheus),
    await stopDispatcher(scene, progress),
  ];
}

async function refuseOneMessage({ posthorn }: Scene): Promise<void> {
  const { status } = await posthorn.api.post('/webhook-messages', {});
  if (status !== 400) throw new Error(`a message without a target was answered with ${status}`);
}

async function checkPanels({ query }: PrometheusServer): Promise<StepResult> {
  const all = DASHBOARDS.flatMap(({ title, rows }) =>
    rows.flatMap(({ panels }) =>
      panels.flatMap((panel) =>
        panel.queries.map(({ expr }) => ({ where: `${title} / ${panel.title}`, expr })),
      ),
    ),
  );
  const empty: string[] = [];
  for (const { where, expr } of all) {
    const asked = inPrometheus(expr, RATE_WINDOW);
    const samples = await query(asked);
    if (!samples.some(({ value }) => Number.isFinite(value))) empty.push(`${where}: ${asked}`);
  }
  return {
    saw: `${all.length} queries of ${DASHBOARDS.length} dashboards`,
    problem: empty.length === 0 ? null : `These panels have no data:\n${empty.join('\n')}`,
  };
}

/** Looks at everything that has fired, not only at what fires now. */
async function checkSilence({ query }: PrometheusServer): Promise<StepResult> {
  const fired = await query('last_over_time(ALERTS{alertstate="firing"}[1h])');
  const names = fired.map(({ labels }) => labels.alertname ?? '');
  const others = [...new Set(names)].filter((name) => name !== ABOUT_ENDPOINTS);
  return {
    saw: `no alert in ${HANGING_FOR_MS / 1_000} s of a hanging endpoint`,
    problem: others.length === 0 ? null : `A hanging endpoint set off ${others.join(', ')}`,
  };
}

async function stopDispatcher(
  { posthorn, prometheus }: Scene,
  progress: Progress,
): Promise<StepResult> {
  const stoppedAtMs = performance.now();
  await posthorn.dispatcher.stop();
  const secondsSince = (): number => Math.round((performance.now() - stoppedAtMs) / 1_000);
  const seen = new Map<string, number>();
  const haveFired = async (): Promise<boolean> => {
    for (const name of await prometheus.firingAlerts()) {
      if (seen.has(name)) continue;
      seen.set(name, secondsSince());
      progress(`${name} fires ${secondsSince()} s after the dispatcher was told to stop`);
    }
    return ABOUT_STOPPED_DISPATCHERS.every((name) => seen.has(name));
  };
  await eventually('the alerts', haveFired, FIRES_WITHIN_MS).catch(() => undefined);
  const missing = ABOUT_STOPPED_DISPATCHERS.filter((name) => !seen.has(name));
  const times = ABOUT_STOPPED_DISPATCHERS.map((name) => `${name} after ${seen.get(name) ?? '?'} s`);
  return {
    saw: times.join(', '),
    problem:
      missing.length === 0
        ? null
        : `${FIRES_WITHIN_MS / 1_000} s after the stop, these do not fire: ${missing.join(', ')}`,
  };
}
