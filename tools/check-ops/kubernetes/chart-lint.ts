import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpsCheck } from '../ops-check.ts';
import { builtProgram, GO, KUBE_SCORE } from '../programs/go-programs.ts';
import { runProgram } from '../programs/run-program.ts';
import { renderedReleases } from './installations.ts';

/** What kube-score finds and is meant so. */
const MEANT = {
  'container-security-context-user-group-id': 'OpenShift assigns a user to each namespace',
  'container-image-pull-policy': 'an image is named by a version or a digest, which stays the same',
  'container-ephemeral-storage-request-and-limit': 'the root is read-only, and logs go to stdout',
  'pod-topology-spread-constraints': 'the values of the check replace those of the gateway',
  'cronjob-has-deadline': 'all are suspended, and never started by their schedule',
};

export const CHART_LINT: OpsCheck = {
  name: 'chart-lint',
  shows: 'kube-score finds nothing critical in the chart but what is meant so.',
  programs: [GO],
  // The first build of kube-score takes minutes.
  isQuick: false,
  run: async (progress) => {
    const kubeScore = await builtProgram(KUBE_SCORE, progress);
    const ignored = Object.keys(MEANT).flatMap((test) => ['--ignore-test', test]);
    const releases = await renderedReleases(progress);
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-chart-'));
    try {
      for (const [index, { byHelm }] of releases.entries()) {
        const file = join(folder, `${index}.yaml`);
        writeFileSync(file, byHelm);
        // A limit of the processor would show as latency.
        const args = ['--ignore-container-cpu-limit', '--kubernetes-version', 'v1.34', ...ignored];
        const command = ['score', '--output-format', 'ci', ...args, file];
        await runProgram(kubeScore, command).catch((error: unknown) => {
          const found = String(error).match(/^\[CRITICAL\].*$/gm);
          throw found === null ? error : new Error(found.join('\n'));
        });
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
    return `${releases.length} releases; ${Object.keys(MEANT).length + 1} kinds of findings are meant so`;
  },
};
