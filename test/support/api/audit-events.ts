import type { ApiClient } from './api-client.ts';
import { dataOf } from './expect-answers.ts';

export interface ShownAuditEvent {
  id: string;
  action: string;
  actor: { kind: string; keyId?: string };
  target: { kind: string; id: string | null };
  clientAddress: string | null;
  requestId: string | null;
  outcome: string;
  code: string | null;
  changes: { field: string; before: unknown; after: unknown }[];
  count: number | null;
  createdAt: string;
  completedAt: string | null;
  /** Printed by the admin command only; null for the installation. */
  companyId?: string | null;
}

export const AUDIT_EVENTS = '/api/v1/audit-events';

/** Returns every event that matches, newest first, read page by page. */
export async function readAuditEvents(
  api: ApiClient,
  filter: Record<string, string> = {},
): Promise<ShownAuditEvent[]> {
  const events: ShownAuditEvent[] = [];
  let next: Record<string, string> | null = {};
  while (next) {
    const query = new URLSearchParams({ ...filter, ...next }).toString();
    const answer = await api.get(`${AUDIT_EVENTS}?${query}`);
    events.push(...dataOf<ShownAuditEvent[]>(answer));
    const { nextCursor } = answer.body;
    next = typeof nextCursor === 'string' ? { cursor: nextCursor } : null;
  }
  return events;
}
