import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpsCheck } from './ops-check.ts';
import { runProgram, ROOT } from './programs/run-program.ts';
import {
  ALERT_FILES,
  CASES_FILE,
  readAlertCases,
  readAlerts,
  RULES,
} from '../../deploy/prometheus/read-alerts.ts';
import { stepsGroup, yamlOf } from '../../k8s/scaling-steps.ts';
import type { NeededProgram } from './programs/ensure-programs.ts';

const PROMTOOL: NeededProgram = { name: 'promtool', aptPackage: 'prometheus' };
export const PROMETHEUS: NeededProgram = { name: 'prometheus', aptPackage: 'prometheus' };

const CONFIGURATION = 'deploy/prometheus/prometheus.yaml';

export const PROMETHEUS_CONFIGURATION: OpsCheck = {
  name: 'prometheus-configuration',
  shows: 'Prometheus accepts its configuration and the rule files that it names.',
  programs: [PROMTOOL],
  isQuick: true,
  run: async () => {
    await runProgram('promtool', ['check', 'config', '--lint-fatal', CONFIGURATION]);
    return CONFIGURATION;
  },
};

/** That each alert has both cases and a paragraph is a unit test: test/deploy/monitoring.test.ts. */
export const ALERTS: OpsCheck = {
  name: 'alerts',
  shows: 'Each alert fires in its bad case and is silent in its good one.',
  programs: [PROMTOOL],
  isQuick: true,
  run: async () => {
    await runProgram('promtool', ['check', 'rules', '--lint-fatal', ...ALERT_FILES]);
    await runProgram('promtool', ['test', 'rules', CASES_FILE]);
    return `${readAlerts().length} alerts, ${readAlertCases().length} cases`;
  },
};

const SCALING = `${RULES}/scaling.yaml`;
const STEPS = 'deploy/prometheus/scaling-steps.yaml';
/** The most that is needed of a dispatcher → how many of 36 partitions' divisors. */
const OF_36 = [
  [0.3, 1],
  [4.2, 6],
  [13, 18],
  [18, 18],
  [18.1, 36],
  [99, 36],
] as const;

export const SCALING_RULES: OpsCheck = {
  name: 'scaling-rules',
  shows: 'The rules for autoscaling give numbers of pods that divide the partitions.',
  programs: [PROMTOOL],
  isQuick: true,
  run: async () => {
    await runProgram('promtool', ['check', 'rules', '--lint-fatal', SCALING, STEPS]);
    await runProgram('promtool', ['test', 'rules', 'deploy/prometheus/scaling.test.yaml']);
    await checkOtherPartitions();
    const recorded = [SCALING, STEPS].flatMap((file) => namesIn(file, /record: (\S+)/g));
    const scalers = globSync('k8s/components/autoscaling/*.yaml', { cwd: ROOT });
    const queried = scalers.flatMap((file) => namesIn(file, /query: max\((\S+?)\{/g));
    const unknown = queried.filter((name) => !recorded.includes(name));
    if (unknown.length > 0) throw new Error(`No rule records ${unknown.join(', ')}`);
    return `${recorded.length} rules, ${queried.length} of them scale; also the steps of 36 partitions`;
  },
};

/** Tests the steps of a number of partitions that the files are not written for. */
async function checkOtherPartitions(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-steps-'));
  try {
    writeFileSync(join(folder, 'steps.yaml'), yamlOf({ groups: [stepsGroup(36)] }));
    const file = join(folder, 'steps.test.yaml');
    writeFileSync(file, yamlOf({ rule_files: ['steps.yaml'], tests: OF_36.map(caseOf) }));
    await runProgram('promtool', ['check', 'rules', '--lint-fatal', join(folder, 'steps.yaml')]);
    await runProgram('promtool', ['test', 'rules', file]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function caseOf([needed, steps]: readonly [number, number]): object {
  const labels = (metric: string): string =>
    `posthorn:dispatcher_replicas:${metric}{namespace="n"}`;
  return {
    interval: '15s',
    input_series: [{ series: labels('needed'), values: `${needed}x4` }],
    promql_expr_test: [
      {
        expr: 'posthorn:dispatcher_replicas:steps',
        eval_time: '1m',
        exp_samples: [{ labels: labels('steps'), value: steps }],
      },
    ],
  };
}

function namesIn(file: string, pattern: RegExp): string[] {
  return [...readFileSync(join(ROOT, file), 'utf8').matchAll(pattern)].map(([, name = '']) => name);
}
