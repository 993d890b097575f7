import { spawnSync } from 'node:child_process';
import type { MemoryGroup } from './memory-group.ts';

const SHELL = '/bin/sh';
const ENTER_AND_RUN = 'echo $$ > "$0" && exec "$@"';

export interface CommandLine {
  command: string;
  args: readonly string[];
}

/**
 * Returns a command that starts the same program inside the group, with the pid of the shell that enters it. Node
 * sizes its heap by the limit that it finds at its start, as in a pod, so it must not be moved there later.
 */
export function insideGroup({ procsPath }: MemoryGroup, { command, args }: CommandLine) {
  return { command: SHELL, args: ['-c', ENTER_AND_RUN, procsPath, command, ...args] };
}

const PATIENCE_MS = 20_000;

/**
 * Returns whether a process that takes `bytes` is killed: some sandboxes accept a limit without
 * enforcing it.
 */
export function isLimitEnforced(group: MemoryGroup, bytes: number): boolean {
  const hog = ['-e', `Buffer.alloc(${bytes}, 1)`];
  const { command, args } = insideGroup(group, { command: process.execPath, args: hog });
  const { signal } = spawnSync(command, args, { stdio: 'ignore', timeout: PATIENCE_MS });
  return signal === 'SIGKILL' && group.killed() > 0;
}
