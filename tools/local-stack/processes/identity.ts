import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Returns when a process started, as a string that no later process with the same pid has; undefined if it has exited.
 * The system reuses pids, and the name may be that of another user's process.
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
    // Ticks are counted from boot, so they may repeat after a reboot.
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return startTicks === undefined ? undefined : `${bootId}/${startTicks}`;
  } catch {
    return undefined;
  }
}

/** Returns field 22 of /proc/PID/stat. Field 2 is the command in parentheses, which may contain spaces and parentheses. */
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
