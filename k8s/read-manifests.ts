import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

interface Probe {
  httpGet: { path: string; port: string };
  periodSeconds: number;
  failureThreshold: number;
}

export interface Container {
  image: string;
  command: string[];
  ports?: { name: string; containerPort: number }[];
  envFrom: { configMapRef: { name: string } }[];
  env?: { name: string; valueFrom: { secretKeyRef: { name: string; key: string } } }[];
  startupProbe: Probe;
  readinessProbe: Probe;
  livenessProbe: Probe;
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  lifecycle: { preStop: { sleep: { seconds: number } } };
}

interface PodTemplate {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: { containers: [Container]; terminationGracePeriodSeconds: number };
}

interface Spec {
  selector: { matchLabels: Record<string, string> };
  template: PodTemplate;
  jobTemplate?: { spec: Spec };
}

/** The parts of a manifest that the tests read. */
export interface Manifest {
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
  data?: Record<string, string>;
  spec: Spec;
}

interface Kustomization {
  resources: string[];
  configMapGenerator: { name: string; literals: string[] }[];
}

const BASE = join(import.meta.dirname, 'base');

/** Returns the manifests of the base and the ConfigMaps that it generates, without anything else that kustomize adds. */
export function readBase(): Manifest[] {
  const { resources, configMapGenerator } = parse(read('kustomization.yaml')) as Kustomization;
  const generated = configMapGenerator.map(({ name, literals }) => ({
    kind: 'ConfigMap',
    metadata: { name },
    data: Object.fromEntries(literals.map(splitLiteral)),
  }));
  return [...resources.flatMap((file) => parseAll(read(file))), ...(generated as Manifest[])];
}

/** Returns the manifests that a component adds. */
export function readComponent(name: string): Manifest[] {
  const files = globSync(`components/${name}/*.yaml`, { cwd: import.meta.dirname });
  const manifests = files.flatMap((file) => parseAll(read(join('..', file))));
  return manifests.filter(({ kind }) => kind !== 'Component');
}

/** Returns the base as kubectl renders it; undefined without kubectl. Throws when kubectl cannot render it. */
export function renderBase(): Manifest[] | undefined {
  const { error, status, stdout, stderr } = spawnSync('kubectl', ['kustomize', BASE], {
    encoding: 'utf8',
  });
  if (error !== undefined && 'code' in error && error.code === 'ENOENT') return undefined;
  if (status !== 0) throw new Error(`kubectl kustomize failed: ${stderr}`, { cause: error });
  return parseAll(stdout);
}

/** The manifests that run pods; a CronJob has the `spec` of the Jobs that it makes. */
export function workloads(manifests: Manifest[]): Manifest[] {
  const found = manifests.filter(({ kind }) => ['Deployment', 'Job', 'CronJob'].includes(kind));
  return found.map((manifest) => {
    const { jobTemplate } = manifest.spec;
    return jobTemplate ? { ...manifest, spec: jobTemplate.spec } : manifest;
  });
}

/** Names of the manifests of one kind, without `posthorn-`, sorted. */
export function namesOf(manifests: Manifest[], wanted: string): string[] {
  const found = manifests.filter(({ kind }) => kind === wanted);
  return found.map(({ metadata }) => metadata.name.replace(/^posthorn-/, '')).sort();
}

/** Finds a manifest by its name without `posthorn-`, among the workloads unless a kind is given. Throws without one. */
export function find(manifests: Manifest[], name: string, kind?: string): Manifest {
  const among = kind ? manifests.filter((each) => each.kind === kind) : workloads(manifests);
  const found = among.find(({ metadata }) => metadata.name === `posthorn-${name}`);
  if (!found) throw new Error(`k8s/base has no ${kind ?? 'workload'} posthorn-${name}`);
  return found;
}

export function containerOf({ spec }: Manifest): Container {
  return spec.template.spec.containers[0];
}

function read(file: string): string {
  return readFileSync(join(BASE, file), 'utf8');
}

function parseAll(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors[0]) throw document.errors[0];
    return document.toJS() as Manifest;
  });
}

function splitLiteral(literal: string): [string, string] {
  const end = literal.indexOf('=');
  return [literal.slice(0, end), literal.slice(end + 1)];
}
