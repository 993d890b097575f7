import { setTimeout as pause } from 'node:timers/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inPrometheus } from '../../../deploy/grafana/source/dashboard.ts';
import { DASHBOARDS } from '../../../deploy/grafana/source/dashboards.ts';
import { PROMETHEUS } from '../promtool.ts';
import type { OpsCheck } from '../ops-check.ts';
import { type PrometheusServer, withScene, type Scene } from './scene.ts';
import { eventually } from '../../../test/support/time/eventually.ts';
import { ROOT } from '../programs/run-program.ts';
import type { ApiClient } from '../../../test/support/api/api-client.ts';

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

/** Otherwise its waiting messages would leave a saturated dispatcher in bursts, and the backlog would not have a steady rate. */
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

const STOPPED_FOR_MS = 300_000;
const FIRES_WITHIN_MS = 120_000;
const ABOUT_STOPPED_DISPATCHERS = ['PosthornServiceAbsent'];

/** Stops the dispatcher for five minutes, and sees that its alerts fire within two. */
async function stopDispatcher(
  { posthorn, prometheus }: Scene,
  progress: (line: string) => void,
): Promise<StepResult> {
  const stoppedAtMs = performance.now();
  await posthorn.dispatcher.stop();
  const sinceMs = (): number => performance.now() - stoppedAtMs;
  const seen = new Map<string, number>();
  const haveFired = async (): Promise<boolean> => {
    for (const name of await prometheus.firingAlerts()) {
      if (seen.has(name)) continue;
      const seconds = Math.round(sinceMs() / 1_000);
      seen.set(name, seconds);
      progress(`${name} fires ${seconds} s after the dispatcher got SIGTERM`);
    }
    return ABOUT_STOPPED_DISPATCHERS.every((name) => seen.has(name));
  };
  await eventually('the alerts', haveFired, FIRES_WITHIN_MS - sinceMs()).catch(() => undefined);
  await pause(STOPPED_FOR_MS - sinceMs());
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

const TOPIC = 'message-created';
/** Twelve a second, so that the backlog of five minutes takes about four. */
const PLACES = 6;
const LATENCY_MS = 500;
/** By then rates over a minute are free of the start and of the time before it. */
const PREDICT_AFTER_MS = 90_000;
const DRAINS_WITHIN_MS = 900_000;
/** At the end of the backlog some attempts are still under way. */
const FEW_RECORDS = 10;
const TOLERANCE = 0.2;

/** The headings in docs/metrics.md: operators copy the expressions below them. */
const HEADINGS = ['**Drain time**', '**Drain time while records keep coming**'];

/** Starts a dispatcher that has a backlog, reads the predicted drain time, and waits for its end. No more messages come. */
async function checkDrainTime(
  { prometheus, respondAfter, startDispatcher }: Scene,
  progress: (line: string) => void,
): Promise<StepResult> {
  respondAfter(LATENCY_MS);
  await startDispatcher({ MAX_IN_FLIGHT: String(PLACES) });
  await pause(PREDICT_AFTER_MS);
  const askedMs = performance.now();
  const predicted = await Promise.all(
    HEADINGS.map((heading) => valueOf(prometheus, expressionBelow(heading))),
  );
  const ready = (): Promise<number> =>
    valueOf(prometheus, 'sum by (topic) (posthorn_ready_records)');
  progress(`${await ready()} records are ready; drain time ${predicted.map(inSeconds).join(', ')}`);
  await eventually(
    'the end of the backlog',
    async () => (await ready()) <= FEW_RECORDS,
    DRAINS_WITHIN_MS,
  );
  const measured = (performance.now() - askedMs) / 1_000;
  const wrong = predicted.filter((each) => !(Math.abs(each / measured - 1) <= TOLERANCE));
  const saw = `drain time ${predicted.map(inSeconds).join(' and ')}, in fact ${inSeconds(measured)}`;
  return { saw, problem: wrong.length === 0 ? null : `Wrong by more than 20 %: ${saw}` };
}

/** Returns the value for the topic of new messages. Throws unless there is exactly one. */
async function valueOf({ query }: PrometheusServer, expr: string): Promise<number> {
  const samples = await query(expr);
  const found = samples.filter(({ labels: { topic = '' } }) => topic.endsWith(TOPIC));
  const [sample, ...others] = found;
  if (!sample || others.length > 0) throw new Error(`${found.length} values for ${expr}`);
  return sample.value;
}

function expressionBelow(heading: string): string {
  const [, below = ''] = readFileSync(join(ROOT, 'docs/metrics.md'), 'utf8').split(heading);
  const [, expression] = /```promql\n([^`]+)```/.exec(below) ?? [];
  if (expression === undefined) throw new Error(`docs/metrics.md has no query below ${heading}`);
  return expression;
}

function inSeconds(value: number): string {
  return `${Math.round(value)} s`;
}

/** The objective of accept: the share of messages that may be refused. */
const MAX_REFUSED_SHARE = 0.001;

/** The webhook that the nth message goes to, from 0. */
type Target = (nth: number) => string;

/** Every second message goes to the first webhook, the others to the rest in turn. */
function halfToFirst([first = '', ...rest]: readonly string[]): Target {
  const toRest = inTurn(rest);
  return (nth) => (nth % 2 === 0 ? first : toRest(Math.floor(nth / 2)));
}

function inTurn(webhookIds: readonly string[]): Target {
  return (nth) => webhookIds[nth % webhookIds.length] ?? '';
}

/** Sends messages while the work runs. It is a problem when more than a thousandth of them are refused. */
async function underTraffic(
  traffic: { api: ApiClient; target: Target; everyMs: number },
  work: () => Promise<StepResult[]>,
): Promise<StepResult[]> {
  const { stop } = startTraffic(traffic);
  const results: StepResult[] = [];
  try {
    results.push(...(await work()));
  } finally {
    results.push(await stop());
  }
  return results;
}

function startTraffic({ api, target, everyMs }: Parameters<typeof underTraffic>[0]): {
  stop: () => Promise<StepResult>;
} {
  const sending = new Set<Promise<void>>();
  let sent = 0;
  const refusals: string[] = [];
  const send = async (): Promise<void> => {
    const nth = sent++;
    try {
      await api.send({ webhookId: target(nth) }, { nth });
    } catch (error) {
      refusals.push(String(error));
    }
  };
  const timer = setInterval(() => {
    const message = send().finally(() => sending.delete(message));
    sending.add(message);
  }, everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(sending);
      const saw = `${sent} messages, ${refusals.length} refused`;
      const isGood = refusals.length <= sent * MAX_REFUSED_SHARE;
      return { saw, problem: isGood ? null : `${saw}: ${refusals[0] ?? ''}` };
    },
  };
}

/** The observation of a step, and its problem; null when all is well. */
interface StepResult {
  saw: string;
  problem: string | null;
}
