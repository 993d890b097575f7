import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readAlertCases, readAlerts } from '../../deploy/prometheus/read-alerts.ts';

const alerts = readAlerts();
const cases = readAlertCases();
const names = alerts.map(({ alert }) => alert);

const runbook = readFileSync(join(import.meta.dirname, '../../docs/runbook.md'), 'utf8');
/** Name of the alert → the text below its heading. */
const paragraphs = new Map(
  runbook
    .split(/^### /m)
    .slice(1)
    .map((section): [string, string] => {
      const [heading = '', ...text] = section.split('\n');
      return [heading, text.join('\n')];
    }),
);

describe.each(alerts)('$alert', ({ alert, labels, annotations, expr }) => {
  const own = cases.filter((each) => each.alert === alert);

  it('has a case in which it fires and one in which it is silent', () => {
    expect(own.some(({ isFiring }) => isFiring)).toBe(true);
    expect(own.some(({ isFiring }) => !isFiring)).toBe(true);
  });

  it('links to its paragraph', () => {
    expect(annotations.runbook_url).toBe(
      '{{ with $externalLabels.posthorn_docs }}{{ . }}/{{ end }}' +
        `runbook.md#${alert.toLowerCase()}`,
    );
  });

  it('has a paragraph that says what it means, how to see it and what to do', () => {
    expect(paragraphs.get(alert)).toMatch(
      new RegExp(`^\\s*_${labels.severity}_[^]*\\*\\*See\\.\\*\\*[^]*\\*\\*Do\\.\\*\\*`),
    );
  });

  it('tells installations apart', () => {
    expect(expr).toMatch(/by \(namespace|:ratio_rate/);
  });
});

describe('docs/runbook.md', () => {
  it('has the alerts in the order of the rules, and no other', () => {
    expect([...paragraphs.keys()]).toEqual(names);
  });
});

describe('the cases', () => {
  it('are about alerts that exist, each with a name of its own', () => {
    expect(cases.filter(({ alert }) => !names.includes(alert))).toEqual([]);
    const titles = cases.map(({ name }) => name);
    expect([...new Set(titles)]).toEqual(titles);
  });
});
