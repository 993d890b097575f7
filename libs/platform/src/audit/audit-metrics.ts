import { Counter, type Registry } from 'prom-client';
import { AUDIT_OUTCOMES } from '@posthorn/domain/audit.ts';
import type { Logger } from '../service/logger.ts';
import { startAtZero } from '../service/metrics.ts';
import type { AuditObserver } from './audit-log.ts';

/** Counts what is written to the audit log, and logs what could not be completed. */
export function createAuditMetrics(
  registry: Registry,
  logger: Pick<Logger, 'error'>,
): AuditObserver {
  const registers = [registry];
  const events = new Counter({
    name: 'posthorn_audit_events_total',
    help: 'Writes to the audit log, by outcome. A change writes started, then done or failed.',
    labelNames: ['outcome'],
    registers,
  });
  startAtZero(events, 'outcome', AUDIT_OUTCOMES);
  const notCompleted = new Counter({
    name: 'posthorn_audit_events_not_completed_total',
    help: 'Audit events whose outcome could not be stored, so that they stay started.',
    registers,
  });
  return {
    stored: (outcome) => {
      events.inc({ outcome });
    },
    notCompleted: ({ id, outcome, error }) => {
      notCompleted.inc();
      logger.error({ err: error, auditEventId: id, outcome }, 'audit event not completed');
    },
  };
}
