import { mkdirSync, mkdtempSync, rmSync, writeFileSync, globSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, dirname } from 'node:path';
import { createHash } from 'node:crypto';
import { parse } from 'yaml';
import type { OpsCheck } from '../ops-check.ts';
import type { NeededProgram } from '../programs/ensure-programs.ts';
import { runProgram } from '../programs/run-program.ts';
import { builtProgram, GO, KUBECONFORM, downloadedModule } from '../programs/go-programs.ts';
import { allRendered, objectsIn } from './installations.ts';
import {
  SCHEMA_LOCATION,
  schemasOfCrd,
  schemasOfKubernetes,
  type Crd,
  type Node,
  type Swagger,
} from './json-schemas.ts';
import { cachedFolder } from '../../local-stack/machine/cache.ts';

const MAVEN: NeededProgram = { name: 'mvn', aptPackage: 'maven' };
const JAVA: NeededProgram = { name: 'java', aptPackage: 'openjdk-17-jre-headless' };

/** Must be refused: fields that do not exist, and a value of the wrong type. Shows that the schemas are in use. */
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
  isQuick: false,
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

/** Writes the objects that both tools render, and returns their number. */
async function writeObjects(folder: string, progress: (line: string) => void): Promise<number> {
  let count = 0;
  for (const { name, text } of await allRendered(progress)) {
    writeFileSync(join(folder, `${name}.yaml`), text);
    count += objectsIn(text).length;
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

/** The oldest Kubernetes that k8s/README.md names, and a current one. */
const KUBERNETES_VERSIONS = ['v1.30.14', 'v1.34.3'] as const;

/** Where the definitions of custom resources are, in Go modules. */
const CRD_MODULES = [
  {
    module: 'github.com/kedacore/keda/v2',
    version: 'v2.18.3',
    files: 'config/crd/bases/keda.sh_scaledobjects.yaml',
  },
  {
    module: 'sigs.k8s.io/gateway-api',
    version: 'v1.4.1',
    files: 'config/crd/standard/*_httproutes.yaml',
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    files: 'example/prometheus-operator-crd/*_{podmonitors,prometheusrules}.yaml',
  },
] as const;

const STRIMZI_POM = join(import.meta.dirname, 'strimzi-pom.xml');
const STRIMZI_CLASSES = ['kafka.Kafka', 'nodepool.KafkaNodePool', 'user.KafkaUser'] as const;
const DOWNLOAD_TIMEOUT_MS = 600_000;

/** Returns the folder with the JSON schemas for one version of Kubernetes. Makes them once per user. */
async function schemaFolder(kubernetes: string, progress: (line: string) => void): Promise<string> {
  const sources = [kubernetes, JSON.stringify(CRD_MODULES), readFileSync(STRIMZI_POM, 'utf8')];
  const code = readFileSync(join(import.meta.dirname, 'json-schemas.ts'), 'utf8');
  const hash = createHash('sha256').update([...sources, code].join('\n'));
  return cachedFolder(
    `schemas-${kubernetes}-${hash.digest('hex').slice(0, 12)}`,
    async (folder) => {
      progress(`making the schemas of Kubernetes ${kubernetes} and of the custom resources`);
      write(folder, schemasOfKubernetes(await swaggerOf(kubernetes)));
      for (const crd of [...(await crdsOfModules()), ...(await crdsOfStrimzi(folder))]) {
        write(folder, schemasOfCrd(crd));
      }
    },
  );
}

async function swaggerOf(version: string): Promise<Swagger> {
  const folder = await downloadedModule('k8s.io/kubernetes', version);
  const text = readFileSync(join(folder, 'api/openapi-spec/swagger.json'), 'utf8');
  return JSON.parse(text) as Swagger;
}

async function crdsOfModules(): Promise<Crd[]> {
  const crds: Crd[] = [];
  for (const { module, version, files } of CRD_MODULES) {
    const folder = await downloadedModule(module, version);
    const found = globSync(files, { cwd: folder });
    if (found.length === 0) throw new Error(`${module} ${version} has no ${files}`);
    crds.push(...found.map((file) => readCrd(join(folder, file))));
  }
  return crds;
}

async function crdsOfStrimzi(folder: string): Promise<Crd[]> {
  const jars = join(folder, 'strimzi');
  await runProgram(
    'mvn',
    [
      '-B',
      '-q',
      '-f',
      STRIMZI_POM,
      'dependency:copy-dependencies',
      '-DincludeScope=runtime',
      `-DoutputDirectory=${jars}`,
    ],
    { timeoutMs: DOWNLOAD_TIMEOUT_MS },
  );
  const crds: Crd[] = [];
  for (const name of STRIMZI_CLASSES) {
    const file = join(jars, `${name}.yaml`);
    const generator = 'io.strimzi.crdgenerator.CrdGenerator';
    const wanted = `io.strimzi.api.kafka.model.${name}=${file}`;
    await runProgram('java', ['-cp', join(jars, '*'), generator, '--yaml', wanted]);
    crds.push(readCrd(file));
  }
  return crds;
}

function readCrd(file: string): Crd {
  return parse(readFileSync(file, 'utf8')) as Crd;
}

function write(folder: string, schemas: Map<string, Node>): void {
  for (const [name, schema] of schemas) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(schema));
  }
}
