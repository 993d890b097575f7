import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { OpsCheck } from '../ops-check.ts';
import { builtProgram, GO, HELM } from '../programs/go-programs.ts';
import { ROOT, runProgram } from '../programs/run-program.ts';
import { objectsIn } from './installations.ts';

const EXAMPLE = 'examples/argocd/application.yaml';

interface Application {
  spec: {
    destination: { namespace: string };
    source: { helm: { releaseName: string; valuesObject: { image: { repository: string } } } };
  };
}

export const ARGOCD_EXAMPLE: OpsCheck = {
  name: 'argocd-example',
  shows: 'The chart renders with the values of the example for Argo CD.',
  programs: [GO],
  isQuick: false,
  run: async (progress) => {
    const helm = await builtProgram(HELM, progress);
    const { spec } = parse(readFileSync(join(ROOT, EXAMPLE), 'utf8')) as Application;
    const { releaseName, valuesObject } = spec.source.helm;
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-example-'));
    try {
      // As Argo CD does it: its values in a file, and `helm template` with the version of the cluster.
      const values = join(folder, 'values.yaml');
      writeFileSync(values, stringify(valuesObject));
      const { namespace } = spec.destination;
      const args = ['--namespace', namespace, '--kube-version', '1.30.0', '--values', values];
      const text = await runProgram(helm, [
        'template',
        releaseName,
        'deploy/helm/posthorn',
        ...args,
      ]);
      const kinds = new Set(objectsIn(text).map(({ kind }) => kind));
      const missing = ['Deployment', 'Kafka', 'PodMonitor', 'HTTPRoute'].filter(
        (kind) => !kinds.has(kind),
      );
      if (missing.length > 0) throw new Error(`${EXAMPLE} makes no ${missing.join(', ')}`);
      if (!text.includes(`${valuesObject.image.repository}:`)) throw new Error('Another image');
      return `${objectsIn(text).length} objects of ${EXAMPLE}`;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
