/** The part of V8's --cpu-prof format that is read here. */
export interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  /** Microseconds between the previous sample and each sample. */
  timeDeltas: number[];
}

export interface SelfTime {
  name: string;
  /** Percent of all time that was not idle. */
  share: number;
  selfMs: number;
}

export interface ProfileSummary {
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
  // A delta is the time before its sample: the next delta tells how long the function of this sample
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
