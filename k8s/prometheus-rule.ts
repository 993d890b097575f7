import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

const FOLDER = join(import.meta.dirname, '../deploy/prometheus');

/** Follows from the number of partitions, and is an object of its own (scaling-steps.ts). */
const STEPS = 'scaling-steps.yaml';

/** Returns the rule groups of every file in deploy/prometheus that has some, in the order of file names, but for the steps. */
export function ruleGroups(): unknown[] {
  const files = globSync('*.yaml', { cwd: FOLDER })
    .sort()
    .filter((file) => file !== STEPS);
  return files.flatMap((file) => {
    const content = parse(readFileSync(join(FOLDER, file), 'utf8')) as { groups?: unknown[] };
    return content.groups ?? [];
  });
}

/** Returns the manifest that gives these groups to the Prometheus operator. */
export function prometheusRuleText(): string {
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: {
      name: 'posthorn',
      labels: {
        'app.kubernetes.io/name': 'posthorn',
        'app.kubernetes.io/part-of': 'posthorn',
      },
    },
    spec: { groups: ruleGroups() },
  };
  return `# Written by k8s/write-generated.ts from deploy/prometheus.\n${stringify(rule, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}
