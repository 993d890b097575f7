import { infiniteQueryOptions } from '@tanstack/react-query';
import { answerOf, api, given, type Schemas } from '../../api/client.ts';

export type AuditEvent = Schemas['AuditEvent'];

export interface AuditFilter {
  action?: AuditEvent['action'] | undefined;
  /** The id of a key or a portal link, `admin` or `system`. */
  actor?: string | undefined;
  targetId?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ['audit', filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => {
      const query = given({ ...filter, cursor: pageParam });
      return answerOf(api.GET('/audit-events', { params: { query } }));
    },
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
