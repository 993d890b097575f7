import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { cachedFolder } from '../../local-stack/machine/cache.ts';
import { runProgram } from '../programs/run-program.ts';
import { downloadedModule } from '../programs/go-programs.ts';
import {
  schemasOfCrd,
  schemasOfKubernetes,
  type Crd,
  type Node,
  type Swagger,
} from './json-schemas.ts';

/** The oldest Kubernetes that k8s/README.md names, and a current one. */
export const KUBERNETES_VERSIONS = ['v1.30.14', 'v1.34.3'] as const;

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
export async function schemaFolder(
  kubernetes: string,
  progress: (line: string) => void,
): Promise<string> {
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
