import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * When a process started, as a string that no later process with the same pid can have; undefined when it is gone.
 * A pid alone is reused by the system, and a name is shared by processes of other people.
 */
export function startIdentity(pid: number): string | undefined {
  return process.platform === 'linux' ? identityFromProc(pid) : identityFromPs(pid);
}

export function isSameProcess(pid: number, identity: string): boolean {
  return startIdentity(pid) === identity;
}

function identityFromProc(pid: number): string | undefined {
  try {
    const startTicks = startTicksOf(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    // Ticks count from boot, so two boots can show the same number.
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return startTicks === undefined ? undefined : `${bootId}/${startTicks}`;
  } catch {
    return undefined;
  }
}

/** Field 22 of /proc/PID/stat. Field 2 is the command in brackets and may itself hold spaces and brackets. */
export function startTicksOf(stat: string): string | undefined {
  const fieldsFromState = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const isGone = fieldsFromState[0] === 'Z' || fieldsFromState[0] === 'X';
  return isGone ? undefined : fieldsFromState[19];
}

function identityFromPs(pid: number): string | undefined {
  try {
    const startedAt = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return startedAt === '' ? undefined : startedAt;
  } catch {
    return undefined;
  }
}
