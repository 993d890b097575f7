import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export interface ProcessUsage {
  /** User and system time since the process started. */
  cpuSeconds: number;
  residentBytes: number;
}

/** Reads the usage of a process from /proc (proc(5)). Returns undefined when it has exited or there is no /proc. */
export function readProcessUsage(pid: number): ProcessUsage | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return parseProcessUsage(stat, unitsOfThisMachine());
  } catch {
    return undefined;
  }
}

interface Units {
  ticksPerSecond: number;
  pageBytes: number;
}

/** Reads the fields 14, 15 and 24. Field 2 is the command in parentheses, which may contain spaces and parentheses. */
export function parseProcessUsage(stat: string, { ticksPerSecond, pageBytes }: Units) {
  const fieldsFromState = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => Number(fieldsFromState[number - 3]);
  return {
    cpuSeconds: (field(14) + field(15)) / ticksPerSecond,
    residentBytes: field(24) * pageBytes,
  };
}

/** Returns the CPU time of the machine since its start, without idle, iowait and stolen time; NaN where there is no /proc. */
export function readMachineCpuSeconds(): number {
  try {
    const stat = readFileSync('/proc/stat', 'latin1');
    return parseMachineCpuSeconds(stat, unitsOfThisMachine().ticksPerSecond);
  } catch {
    return NaN;
  }
}

/** The first line: cpu user nice system idle iowait irq softirq steal. */
export function parseMachineCpuSeconds(stat: string, ticksPerSecond: number): number {
  const ticks = stat.slice(0, stat.indexOf('\n')).split(/\s+/).slice(1).map(Number);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = ticks;
  return (user + nice + system + irq + softirq) / ticksPerSecond;
}

let knownUnits: Units | undefined;

function unitsOfThisMachine(): Units {
  const ask = (name: string): number =>
    Number(execFileSync('getconf', [name], { encoding: 'utf8' }));
  knownUnits ??= { ticksPerSecond: ask('CLK_TCK'), pageBytes: ask('PAGESIZE') };
  return knownUnits;
}

/** Returns the processes whose environment has this entry, "NAME=value": also of daemons that are not our children. */
export function pidsWithEnvironment(entry: string): number[] {
  const numbers = existsSync('/proc') ? readdirSync('/proc').map(Number) : [];
  return numbers.filter((pid) => pid > 0 && environmentOf(pid).includes(entry));
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
