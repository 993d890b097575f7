import { existsSync, rmSync, writeFileSync } from 'node:fs';

/** Debian asks this program before an installation starts a service; 101 means no. Images for containers have it. */
const POLICY_FILE = '/usr/sbin/policy-rc.d';

/** Does the work while packages start none of their services. A policy that exists stays as it is. */
export async function withoutStartingServices<T>(
  work: () => Promise<T>,
  policyFile = POLICY_FILE,
): Promise<T> {
  if (existsSync(policyFile)) return work();
  const remove = (): void => {
    rmSync(policyFile, { force: true });
  };
  process.once('exit', remove);
  writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return await work();
  } finally {
    remove();
    process.removeListener('exit', remove);
  }
}
