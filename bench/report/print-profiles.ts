import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StackProcess } from '../../tools/local-stack/processes/child.ts';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { type CpuProfile, summarize } from './cpu-profile.ts';
import { RESULTS } from './write-report.ts';

export const PROFILES = join(RESULTS, 'profiles');
/** The whole run is in it, start and warm-up too. */
export const PROFILE_FLAGS = ['--cpu-prof', `--cpu-prof-dir=${PROFILES}`];

const ROWS = 15;

/** Written by each service as it ends, under its pid. */
export function printProfiles(processes: readonly StackProcess[]): void {
  const services = processes.filter(({ name }) => SERVICES.some((service) => service === name));
  for (const { name, pid } of services) printProfile(name, pid);
}

function printProfile(service: string, pid: number): void {
  const files = existsSync(PROFILES) ? readdirSync(PROFILES) : [];
  // CPU.date.time.pid.thread.number.cpuprofile; thread 0 is the main one.
  const file = files.find((each) => each.includes(`.${pid}.0.`));
  if (file === undefined) {
    console.log(`${service}: wrote no profile`);
    return;
  }
  const profile = JSON.parse(readFileSync(join(PROFILES, file), 'utf8')) as CpuProfile;
  const { functions, modules } = summarize(profile, ROWS);
  console.log(`\n${service}: functions by their own time, percent of all that is not idle`);
  console.table(functions);
  console.log(`${service}: modules`);
  console.table(modules);
}
