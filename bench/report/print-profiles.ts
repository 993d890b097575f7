import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StackProcess } from '../../tools/local-stack/processes/child.ts';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { type CpuProfile, summarize } from './cpu-profile.ts';
import { RESULTS } from './write-report.ts';

export const PROFILES = join(RESULTS, 'profiles');
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
