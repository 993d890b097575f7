import { readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;
/** The places of utime, stime, cutime and cstime in proc_pid_stat(5), counted from the state behind the name. */
const [OWN, CHILDREN] = [11, 13];

/**
 * Returns the processor time in seconds that this process has used, and its children that have ended. Where there is no
 * /proc, children count 0.
 */
export function processorSeconds(): { own: number; children: number } {
  try {
    const text = readFileSync('/proc/self/stat', 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const secondsAt = (place: number): number =>
      (Number(fields[place]) + Number(fields[place + 1])) / TICKS_PER_SECOND;
    return { own: secondsAt(OWN), children: secondsAt(CHILDREN) };
  } catch {
    const { user, system } = process.cpuUsage();
    return { own: (user + system) / 1_000_000, children: 0 };
  }
}
