import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StackProcess } from '../../tools/local-stack/processes/child.ts';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { RESULTS } from './report.ts';

const PROFILES = join(RESULTS, 'profiles');
/** The profiles cover the whole run, start and warm-up included. */
export const PROFILE_FLAGS = ['--cpu-prof', `--cpu-prof-dir=${PROFILES}`];

const ROWS = 15;

/** Prints the profiles that the services wrote when they exited. */
export function printProfiles(processes: readonly StackProcess[]): void {
  const services = processes.filter(({ name }) => SERVICES.some((service) => service === name));
  for (const { name, pid } of services) printProfile(name, pid);
}

function printProfile(service: string, pid: number): void {
  const files = existsSync(PROFILES) ? readdirSync(PROFILES) : [];
  // CPU.date.time.pid.thread.number.cpuprofile; thread 0 is the main one.
  const file = files.find((each) => each.includes(`.${pid}.0.`));
  if (file === undefined) {
    console.log(`${service}: no profile was written`);
    return;
  }
  const profile = JSON.parse(readFileSync(join(PROFILES, file), 'utf8')) as CpuProfile;
  const { functions, modules } = summarize(profile, ROWS);
  console.log(`\n${service}: functions by self time, percent of all time that was not idle`);
  console.table(functions);
  console.log(`${service}: modules`);
  console.table(modules);
}

/** The part of V8's --cpu-prof format that is read here. */
interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  /** Microseconds between the previous sample and each sample. */
  timeDeltas: number[];
}

interface SelfTime {
  name: string;
  /** Percent of all time that was not idle. */
  share: number;
  selfMs: number;
}

interface ProfileSummary {
  functions: SelfTime[];
  modules: SelfTime[];
}

const IDLE = '(idle)';

/** Returns the functions and modules with the most self time: without the functions that they called. */
export function summarize(profile: CpuProfile, limit: number): ProfileSummary {
  const selfUs = selfTimes(profile);
  const functions = new Map<string, number>();
  const modules = new Map<string, number>();
  for (const { id, callFrame } of profile.nodes) {
    const timeUs = selfUs.get(id) ?? 0;
    const { functionName, url, lineNumber } = callFrame;
    if (timeUs === 0 || functionName === IDLE) continue;
    const module = moduleOf(url, functionName);
    const line = url === '' ? '' : `:${lineNumber + 1}`;
    add(functions, `${functionName || '(anonymous)'}  ${module}${line}`, timeUs);
    add(modules, module, timeUs);
  }
  return { functions: top(functions, limit), modules: top(modules, limit) };
}

function selfTimes({ samples, timeDeltas }: CpuProfile): Map<number, number> {
  const times = new Map<number, number>();
  // A delta is the time before its sample: the next delta is how long the function of this sample
  // ran. Some are negative.
  for (const [index, nodeId] of samples.entries()) {
    const timeUs = Math.max(0, timeDeltas[index + 1] ?? 0);
    times.set(nodeId, (times.get(nodeId) ?? 0) + timeUs);
  }
  return times;
}

/**
 * Returns a package, a module of Node, or a file of this repository from its services or libs folder
 * on.
 */
export function moduleOf(url: string, functionName: string): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native code';
  const inPackage = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
  if (inPackage !== undefined && !inPackage.startsWith('@posthorn/')) return inPackage;
  return /\/((?:services|libs)\/.*)$/.exec(url)?.[1] ?? url.replace(/^file:.*\//, '');
}

function add(sums: Map<string, number>, name: string, timeUs: number): void {
  sums.set(name, (sums.get(name) ?? 0) + timeUs);
}

function top(sums: ReadonlyMap<string, number>, limit: number): SelfTime[] {
  const totalUs = [...sums.values()].reduce((sum, timeUs) => sum + timeUs, 0);
  return [...sums]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, limit)
    .map(([name, timeUs]) => ({
      name,
      share: Number(((100 * timeUs) / totalUs).toFixed(1)),
      selfMs: Math.round(timeUs / 1_000),
    }));
}
