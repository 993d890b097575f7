import type { OpsCheck } from '../ops-check.ts';
import { runProgram } from '../programs/run-program.ts';
import { PROMTOOL } from './programs.ts';

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
