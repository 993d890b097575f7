import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { templates } from './chart/templates.ts';
import { valuesSchemaText } from './chart/values-schema.ts';
import { valuesText } from './chart/values.ts';
import { prometheusRuleText } from './prometheus-rule.ts';
import { DEFAULT_PARTITIONS, stepsGroup, stepsRule, yamlOf } from './scaling-steps.ts';

const ROOT = join(import.meta.dirname, '..');
const CHART = 'deploy/helm/posthorn';

/** Returns the files that are made from k8s/base, k8s/components and deploy/prometheus, by path from the root. */
export function generatedFiles(): Map<string, string> {
  const rule = prometheusRuleText();
  const files = new Map([
    ['deploy/prometheus/scaling-steps.yaml', steps({ groups: [stepsGroup(DEFAULT_PARTITIONS)] })],
    ['k8s/components/monitoring/prometheus-rule.yaml', rule],
    ['k8s/components/monitoring/scaling-steps.yaml', steps(stepsRule(DEFAULT_PARTITIONS))],
    [`${CHART}/files/prometheus-rule.yaml`, rule],
    [`${CHART}/Chart.yaml`, chartText()],
    [`${CHART}/values.yaml`, valuesText()],
    [`${CHART}/values.schema.json`, valuesSchemaText()],
  ]);
  for (const [name, text] of templates()) {
    const heading = `{{/* Written by k8s/write-generated.ts. */}}\n`;
    files.set(`${CHART}/templates/${name}`, `${heading}${text}`);
  }
  return files;
}

/** Of another number of partitions, k8s/print-scaling-steps.ts prints them; the chart calculates them. */
function steps(content: object): string {
  const number = `${DEFAULT_PARTITIONS} partitions; of others: node k8s/print-scaling-steps.ts`;
  return `# Written by k8s/write-generated.ts for ${number}\n${yamlOf(content)}`;
}

function chartText(): string {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8');
  const { version, description } = JSON.parse(text) as { version: string; description: string };
  return `# Written by k8s/write-generated.ts.
apiVersion: v2
name: posthorn
description: ${JSON.stringify(description)}
type: application
version: ${version}
appVersion: ${version}
kubeVersion: '>=1.30.0-0'
`;
}

if (import.meta.main) {
  for (const [path, text] of generatedFiles()) {
    const file = join(ROOT, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
