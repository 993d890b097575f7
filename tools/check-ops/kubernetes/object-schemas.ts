import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OpsCheck } from '../ops-check.ts';
import type { NeededProgram } from '../programs/needed-programs.ts';
import { runProgram } from '../programs/run-program.ts';
import { builtProgram, GO, KUBECONFORM } from '../programs/go-programs.ts';
import { renderedInstallations } from './installations.ts';
import { SCHEMA_LOCATION } from './json-schemas.ts';
import { objectsIn } from './rendered.ts';
import { KUBERNETES_VERSIONS, schemaFolder } from './schemas.ts';

const MAVEN: NeededProgram = { name: 'mvn', aptPackage: 'maven' };
const JAVA: NeededProgram = { name: 'java', aptPackage: 'openjdk-17-jre-headless' };

/** What admits everything would admit these too: a field that does not exist, and a value of the wrong type. */
const WRONG = `apiVersion: apps/v1
kind: Deployment
metadata: { name: wrong }
spec: { replcas: 2, selector: {}, template: { spec: { containers: [] } } }
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: { name: wrong }
spec: { scaleTargetRef: { name: wrong }, triggers: [], maxReplicas: 2 }
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: { name: wrong }
spec: { replicas: three, roles: [broker], storage: { type: jbod } }
`;

interface Report {
  resources?: { filename: string; kind: string; name: string; status: string; msg: string }[];
  summary: { valid: number; invalid: number; errors: number; skipped: number };
}

export const OBJECT_SCHEMAS: OpsCheck = {
  name: 'kubernetes-schemas',
  shows: 'Every object is valid by the schema of its kind, custom resources too.',
  programs: [GO, MAVEN, JAVA],
  isQuick: true,
  run: async (progress) => {
    const kubeconform = await builtProgram(KUBECONFORM, progress);
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-objects-'));
    try {
      const [wrong, right] = [join(folder, 'wrong.yaml'), join(folder, 'right')];
      writeFileSync(wrong, WRONG);
      mkdirSync(right);
      const expected = await writeObjects(right, progress);
      for (const version of KUBERNETES_VERSIONS) {
        const schemas = join(await schemaFolder(version, progress), SCHEMA_LOCATION);
        requireInvalid(await validated(kubeconform, schemas, wrong), version);
        requireValid(await validated(kubeconform, schemas, right), expected, version);
      }
      return `${expected} objects, by the schemas of Kubernetes ${KUBERNETES_VERSIONS.join(' and ')}`;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Writes what both tools render, and returns how many objects that is. */
async function writeObjects(folder: string, progress: (line: string) => void): Promise<number> {
  let count = 0;
  for (const { name, byKustomize, byHelm } of await renderedInstallations(progress)) {
    for (const [tool, text] of [
      ['kustomize', byKustomize],
      ['helm', byHelm],
    ] as const) {
      writeFileSync(join(folder, `${name}-${tool}.yaml`), text);
      count += objectsIn(text).length;
    }
  }
  return count;
}

async function validated(kubeconform: string, schemas: string, path: string): Promise<Report> {
  const args = ['-strict', '-summary', '-output', 'json', '-schema-location', schemas, path];
  try {
    return JSON.parse(await runProgram(kubeconform, args)) as Report;
  } catch (error) {
    // It fails with the report as its output.
    const text = error instanceof Error ? error.message : '';
    return JSON.parse(text.slice(text.indexOf('{\n'))) as Report;
  }
}

function requireInvalid({ summary: { invalid } }: Report, version: string): void {
  if (invalid !== 3) throw new Error(`${invalid} of 3 wrong objects were refused for ${version}.`);
}

function requireValid(
  { resources = [], summary }: Report,
  expected: number,
  version: string,
): void {
  const { valid, skipped } = summary;
  if (valid === expected && skipped === 0) return;
  const lines = resources.map(
    ({ filename, kind, name, status, msg }) => `${filename}: ${kind} ${name}: ${status}: ${msg}`,
  );
  const count = `${valid} of ${expected} objects are valid for ${version}, ${skipped} skipped`;
  throw new Error([count, ...lines].join('\n'));
}
