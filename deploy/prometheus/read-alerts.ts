import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

/** In the folder of the chart, because a packed chart has nothing else. */
export const RULES = 'deploy/helm/posthorn/files/rules';
/** `alerts.production.yaml` is for installations with autoscalers. */
export const ALERT_FILES = [`${RULES}/alerts.yaml`, `${RULES}/alerts.production.yaml`] as const;
export const CASES_FILE = 'deploy/prometheus/alerts.test.yaml';

const alertSchema = z.object({
  alert: z.string(),
  expr: z.string(),
  labels: z.strictObject({ severity: z.enum(['page', 'ticket']) }),
  annotations: z.strictObject({
    summary: z.string(),
    description: z.string(),
    runbook_url: z.string(),
  }),
});

const rulesSchema = z.object({
  groups: z.array(
    z.object({
      rules: z.array(z.union([alertSchema, z.object({ record: z.string(), expr: z.string() })])),
    }),
  ),
});

const casesSchema = z.object({
  tests: z.array(
    z.object({
      name: z.string(),
      alert_rule_test: z.array(
        z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) }),
      ),
    }),
  ),
});

export type Alert = z.infer<typeof alertSchema>;

/** One line of `promtool test rules`. */
export interface AlertCase {
  name: string;
  alert: string;
  isFiring: boolean;
}

/** Throws when an alert lacks its severity, a text or the link to the runbook. */
export function readAlerts(): Alert[] {
  const groups = ALERT_FILES.flatMap((file) => rulesSchema.parse(parse(textOf(file))).groups);
  return groups.flatMap(({ rules }) => rules.filter((rule) => 'alert' in rule));
}

export function readAlertCases(): AlertCase[] {
  const { tests } = casesSchema.parse(parse(textOf(CASES_FILE)));
  return tests.flatMap(({ name, alert_rule_test: cases }) =>
    cases.map(({ alertname: alert, exp_alerts: expected }) => ({
      name,
      alert,
      isFiring: expected.length > 0,
    })),
  );
}

function textOf(file: string): string {
  return readFileSync(join(import.meta.dirname, '../..', file), 'utf8');
}
