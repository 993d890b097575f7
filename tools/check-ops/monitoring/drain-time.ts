import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../../test/support/time/eventually.ts';
import { ROOT } from '../programs/run-program.ts';
import type { PrometheusServer } from './prometheus-server.ts';
import type { Scene } from './scene.ts';
import type { StepResult } from './step-result.ts';

const TOPIC = 'message-created';
/** Twelve a second, so that the backlog of five minutes takes about four. */
const PLACES = 6;
const LATENCY_MS = 500;
/** Rates of a minute know nothing of the start then, nor of what came before it. */
const ASK_AFTER_MS = 90_000;
const DRAINS_WITHIN_MS = 900_000;
/** What is left when the backlog is gone: some attempts under way. */
const FEW_RECORDS = 10;
const TOLERANCE = 0.2;

/** The headings in docs/metrics.md: what is checked is what operators copy. */
const HEADINGS = ['**Drain time**', '**Drain time while records keep coming**'];

/** Starts a dispatcher that has a backlog, asks how long that takes, and waits for its end. No more messages come. */
export async function checkDrainTime(
  { prometheus, respondAfter, startDispatcher }: Scene,
  progress: (line: string) => void,
): Promise<StepResult> {
  respondAfter(LATENCY_MS);
  await startDispatcher({ MAX_IN_FLIGHT: String(PLACES) });
  await pause(ASK_AFTER_MS);
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
