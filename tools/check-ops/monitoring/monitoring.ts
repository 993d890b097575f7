import { setTimeout as pause } from 'node:timers/promises';
import { inPrometheus } from '../../../deploy/grafana/source/dashboard.ts';
import { DASHBOARDS } from '../../../deploy/grafana/source/dashboards.ts';
import { PROMETHEUS } from '../prometheus/programs.ts';
import type { OpsCheck } from '../ops-check.ts';
import { checkDrainTime } from './drain-time.ts';
import type { PrometheusServer } from './prometheus-server.ts';
import { withScene, type Scene } from './scene.ts';
import type { StepResult } from './step-result.ts';
import { stopDispatcher } from './stopped-dispatcher.ts';
import { halfToFirst, inTurn, underTraffic } from './traffic.ts';

/** 20 messages a second: half of them to the endpoint that hangs. */
const EVERY_MS = 50;
/** The others get as many as before, so that the backlog takes some minutes. */
const EVERY_MS_WHILE_STOPPED = 100;
/** Longer than the `for` of every alert but one, which is half an hour: what began late shows as pending. */
const HANGING_FOR_MS = 720_000;
const RATE_WINDOW = '1m';
/** Fires about endpoints, so it may. */
const ABOUT_ENDPOINTS = 'PosthornManyCircuitsOpen';
/**
 * All that has fired, and what has been pending for a minute: four evaluations, so that a single slow moment is left
 * out.
 */
const ALERTED = `last_over_time(ALERTS{alertstate="firing"}[1h])
  or count_over_time(ALERTS{alertstate="pending"}[1m]) > 3`;

type Progress = (line: string) => void;

export const MONITORING: OpsCheck = {
  name: 'monitoring',
  shows:
    'Every panel has data; one hanging endpoint of 100 alerts nobody; stopped dispatchers do within two minutes; drain time is right within 20 %.',
  programs: [PROMETHEUS],
  isQuick: false,
  run: async (progress) => {
    const results: StepResult[] = [];
    await withScene(async (scene) => {
      const { posthorn, webhookIds } = scene;
      results.push(
        ...(await underTraffic(
          { api: posthorn.api, target: halfToFirst(webhookIds), everyMs: EVERY_MS },
          () => whileOneHangs(scene, progress),
        )),
      );
      await disableHanging(scene);
      results.push(
        ...(await underTraffic(
          {
            api: posthorn.api,
            target: inTurn(webhookIds.slice(1)),
            everyMs: EVERY_MS_WHILE_STOPPED,
          },
          async () => [await stopDispatcher(scene, progress)],
        )),
      );
      results.push(await checkDrainTime(scene, progress));
    });
    const problems = results.flatMap(({ problem }) => problem ?? []);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    return results.map(({ saw }) => saw).join(', ');
  },
};

async function whileOneHangs(scene: Scene, progress: Progress): Promise<StepResult[]> {
  progress(`half of the messages go to an endpoint that hangs, for ${HANGING_FOR_MS / 60_000} min`);
  await pause(HANGING_FOR_MS);
  await refuseOneMessage(scene);
  return [await checkPanels(scene.prometheus), await checkSilence(scene.prometheus)];
}

/** What waits for it would otherwise leave a saturated dispatcher in bursts, and be no backlog of a steady rate. */
async function disableHanging({ posthorn, webhookIds: [hanging = ''] }: Scene): Promise<void> {
  const { status } = await posthorn.api.put(`/webhooks/${hanging}`, { disabled: true });
  if (status !== 200) throw new Error(`disabling a webhook was answered with ${status}`);
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

async function checkSilence({ query }: PrometheusServer): Promise<StepResult> {
  const alerted = (await query(ALERTED)).map(({ labels: { alertname = '', alertstate = '' } }) => ({
    alertname,
    alertstate,
  }));
  const others = alerted.filter(({ alertname }) => alertname !== ABOUT_ENDPOINTS);
  const names = new Set(others.map(({ alertname, alertstate }) => `${alertname} (${alertstate})`));
  return {
    saw: `no alert in ${HANGING_FOR_MS / 1_000} s of a hanging endpoint`,
    problem: names.size === 0 ? null : `A hanging endpoint set off ${[...names].join(', ')}`,
  };
}
