import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../../tools/local-stack/stack-error.ts';

/** A file system in memory whose size is limited: it can be full without harm to the machine. */
export interface SmallDisk {
  path: string;
  /** Takes all that is free. */
  fill: () => void;
  /** Frees what `fill` took. */
  free: () => void;
  unmount: () => void;
}

const FILLER = 'filler';
const PIECE_BYTES = 64 * 1_024;

/** Throws where this process may not mount. */
export function mountSmallDisk(path: string, mebibytes: number): SmallDisk {
  unmountIfMounted(path);
  mkdirSync(path, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path], {
      stdio: 'pipe',
    });
  } catch {
    throw new StackError('This round needs to mount a small file system, which only root may do.');
  }
  const filler = join(path, FILLER);
  return {
    path,
    fill: () => {
      fill(filler, path);
    },
    free: () => {
      rmSync(filler, { force: true });
    },
    unmount: () => {
      unmountIfMounted(path);
    },
  };
}

/** Also after a run that was killed. Files that a process still has open there are removed when it exits. */
export function unmountIfMounted(path: string): void {
  try {
    execFileSync('umount', ['-l', path], { stdio: 'pipe' });
  } catch {
    // Not mounted.
  }
}

/** Another process may write meanwhile and take the last piece: the disk is full then too. */
function fill(filler: string, path: string): void {
  const piece = Buffer.alloc(PIECE_BYTES);
  try {
    for (;;) {
      const { bavail, bsize } = statfsSync(path);
      if (bavail === 0) return;
      const rest = piece.subarray(0, Math.min(piece.length, bavail * bsize));
      writeFileSync(filler, rest, { flag: 'a' });
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
