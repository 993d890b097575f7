import {
  CASES_FILE,
  readAlertCases,
  readAlerts,
  RULE_FILES,
} from '../../../deploy/prometheus/read-alerts.ts';
import type { OpsCheck } from '../ops-check.ts';
import { runProgram } from '../programs/run-program.ts';
import { PROMTOOL } from './programs.ts';

const FOLDER = 'deploy/prometheus';

/** That each alert has both cases and a paragraph is a unit test: test/deploy/alerts.test.ts. */
export const ALERTS: OpsCheck = {
  name: 'alerts',
  shows: 'Each alert fires in its bad case and is silent in its good one.',
  programs: [PROMTOOL],
  isQuick: true,
  run: async () => {
    const files = RULE_FILES.map((file) => `${FOLDER}/${file}`);
    await runProgram('promtool', ['check', 'rules', '--lint-fatal', ...files]);
    await runProgram('promtool', ['test', 'rules', `${FOLDER}/${CASES_FILE}`]);
    return `${readAlerts().length} alerts, ${readAlertCases().length} cases`;
  },
};
