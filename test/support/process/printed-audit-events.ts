import type { ShownAuditEvent } from '../api/audit-events.ts';
import { ADMIN } from './posthorn.ts';
import { runProgram } from './service-process.ts';

/** Returns what the admin command prints: the events of the installation and of every company, oldest first. */
export async function printedAuditEvents(
  env: Record<string, string>,
  action: string,
): Promise<ShownAuditEvent[]> {
  const text = await runProgram(ADMIN, ['audit-events', 'list'], env);
  const lines = text.split('\n').filter((line) => line !== '');
  const events = lines.map((line) => JSON.parse(line) as ShownAuditEvent);
  return events.filter((each) => each.action === action);
}
