import { stopWine } from '../mongodb/wine.ts';
import { type Log, settlesWithin, until } from '../waiting.ts';
import { isSameProcess } from './identity.ts';
import { readRecord, type RecordedChild, writeRecord } from './record.ts';
import { signalGroup } from './signal-group.ts';
import { inStopOrder } from './stop-order.ts';

/** Long enough for a dispatcher to finish the requests it has under way. */
const DRAIN_TIMEOUT_MS = 20_000;

/** Ends what a killed supervisor left running. Only to be called while holding the lock of the folder. */
export async function endOrphans(stackDir: string, log: Log): Promise<void> {
  const orphans = readRecord(stackDir).filter((child) => isSameProcess(child.pid, child.identity));
  if (orphans.length > 0) {
    log(`Ending what an earlier stack left running: ${orphans.map(({ name }) => name).join(', ')}`);
  }
  for (const orphan of inStopOrder(orphans)) await endOrphan(orphan);
  await stopWine(stackDir);
  writeRecord(stackDir, []);
}

async function endOrphan(orphan: RecordedChild): Promise<void> {
  const gone = () =>
    until({ what: `The end of ${orphan.name}`, timeoutMs: DRAIN_TIMEOUT_MS }, () =>
      Promise.resolve(!isSameProcess(orphan.pid, orphan.identity)),
    );
  signalGroup(orphan.pid, 'SIGTERM');
  await settlesWithin(gone(), DRAIN_TIMEOUT_MS + 1_000);
  if (isSameProcess(orphan.pid, orphan.identity)) signalGroup(orphan.pid, 'SIGKILL');
  await gone();
}
