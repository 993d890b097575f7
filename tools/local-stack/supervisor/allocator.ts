import { existsSync, globSync } from 'node:fs';

const JEMALLOC = 'libjemalloc.so.2';
const FOLDERS = ['/usr/lib/*-linux-gnu', '/usr/lib64', '/usr/lib'];

/**
 * Returns the settings of the memory allocator, which are those of the image. After a burst glibc keeps 120 to 146 MiB
 * of freed memory; jemalloc keeps none (docs/performance.md, Memory). Debian's Redis package installs jemalloc. Without
 * it, glibc is limited to two arenas instead of one per thread.
 */
export function allocatorEnv(hasLibrary = isInstalled): Record<string, string> {
  if (!hasLibrary(JEMALLOC)) return { MALLOC_ARENA_MAX: '2' };
  return {
    LD_PRELOAD: JEMALLOC,
    MALLOC_CONF: 'background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0',
  };
}

/** The dynamic loader searches these folders for a name without a path. */
function isInstalled(library: string): boolean {
  return FOLDERS.flatMap((folder) => globSync(folder)).some((folder) =>
    existsSync(`${folder}/${library}`),
  );
}
