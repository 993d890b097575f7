import { stopWine } from '../stores/mongodb-native.ts';
import { type Log, settlesWithin, waitUntil } from '../waiting.ts';
import { isSameProcess } from '../processes/identity.ts';
import {
  readChildrenFile,
  type RecordedChild,
  writeChildrenFile,
  inStopOrder,
} from '../processes/children.ts';
import { signalGroup } from '../processes/child.ts';

/** Long enough for a dispatcher to finish its running requests. */
const DRAIN_TIMEOUT_MS = 20_000;

/** Stops the processes that a killed supervisor has left running. The caller must hold the lock of the folder. */
export async function endOrphans(stackDir: string, log: Log): Promise<void> {
  const orphans = readChildrenFile(stackDir).filter((child) =>
    isSameProcess(child.pid, child.identity),
  );
  if (orphans.length > 0) {
    log(`Stopping processes of an earlier stack: ${orphans.map(({ name }) => name).join(', ')}`);
  }
  for (const orphan of inStopOrder(orphans)) await endOrphan(orphan);
  await stopWine(stackDir);
  writeChildrenFile(stackDir, []);
}

async function endOrphan(orphan: RecordedChild): Promise<void> {
  const waitUntilExited = () =>
    waitUntil({ what: `${orphan.name} to exit`, timeoutMs: DRAIN_TIMEOUT_MS }, () =>
      Promise.resolve(!isSameProcess(orphan.pid, orphan.identity)),
    );
  signalGroup(orphan.pid, 'SIGTERM');
  await settlesWithin(waitUntilExited(), DRAIN_TIMEOUT_MS + 1_000);
  if (isSameProcess(orphan.pid, orphan.identity)) signalGroup(orphan.pid, 'SIGKILL');
  await waitUntilExited();
}
