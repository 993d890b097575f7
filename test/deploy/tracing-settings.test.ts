import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { containerOf, find, readBase } from '../../k8s/read-manifests.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const [, furtherSettings = ''] = read('docs/tracing.md').split('## Further settings');
const documented = new Set(furtherSettings.match(/OTEL_[A-Z_]+/g));
const inSecret = 'OTEL_EXPORTER_OTLP_HEADERS';

describe('the settings that the exporter of traces reads itself', () => {
  it('may be set in the chart, but for the one that is a secret', () => {
    const keys = z.object({ properties: z.record(z.string(), z.unknown()) });
    const schema = z
      .object({
        properties: z.object({
          settings: z.object({ properties: z.object({ tracing: keys }) }),
        }),
      })
      .parse(JSON.parse(read('deploy/helm/posthorn/values.schema.json')));
    const allowed = Object.keys(schema.properties.settings.properties.tracing.properties);
    expect(documented.size).toBeGreaterThan(5);
    expect([...documented].filter((name) => !allowed.includes(name))).toEqual([inSecret]);
  });

  it.each(['gateway', 'dispatcher'])(
    'come to the %s from the Secret when they are secret',
    (name) => {
      const { env = [] } = containerOf(find(readBase(), name));
      expect(env.find((each) => each.name === inSecret)?.valueFrom.secretKeyRef).toEqual({
        name: 'posthorn',
        key: inSecret,
        optional: true,
      });
    },
  );
});
