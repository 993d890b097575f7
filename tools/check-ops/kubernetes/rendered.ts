import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ROOT, runProgram } from '../programs/run-program.ts';
import { builtProgram, HELM, KUSTOMIZE } from '../programs/go-programs.ts';

const CHART = join(ROOT, 'deploy/helm/posthorn');
/** Of no cluster: `go build` gives Helm none, and the chart asks for 1.30. */
const KUBE_VERSION = '1.34.3';

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: Record<string, unknown>;
}

type Progress = (line: string) => void;

/** Renders a folder, from the root of the repository, as `kubectl apply -k` does: kustomize is the same code. */
export async function renderedByKustomize(folder: string, progress: Progress): Promise<string> {
  const kustomize = await builtProgram(KUSTOMIZE, progress);
  return runProgram(kustomize, ['build', resolve(ROOT, folder)]);
}

/** Renders the chart with these values for the namespace `posthorn`. `lint` refuses what is wrong before a cluster does. */
export async function renderedByHelm(
  valueFiles: readonly string[],
  progress: Progress,
): Promise<string> {
  const helm = await builtProgram(HELM, progress);
  const values = valueFiles.flatMap((file) => ['--values', file]);
  const args = ['--namespace', 'posthorn', '--kube-version', KUBE_VERSION, ...values];
  await runProgram(helm, ['lint', '--strict', CHART, ...args]);
  return runProgram(helm, ['template', 'posthorn', CHART, ...args]);
}

/** Throws on a document that is no YAML. */
export function objectsIn(text: string): KubernetesObject[] {
  const documents = parseAllDocuments(text);
  return documents.flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    const object = document.toJS() as KubernetesObject | null;
    return object === null ? [] : [object];
  });
}
