import type { ReportIncident } from '@posthorn/platform/operator-events/report-incidents.ts';
import type {
  CircuitOwner,
  CircuitTimes,
  OpenCircuits,
} from '@posthorn/platform/redis/open-circuits.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

/** Reports that the circuit of an endpoint has changed: to the next owner, in the log, and to the operator. */
export interface CircuitChanges {
  /** The circuit opened. */
  onOpen: (times: CircuitTimes) => void;
  /** A probe failed: it was open before, and is open until the next one. */
  onStayOpen: (times: CircuitTimes) => void;
  onClose: () => void;
}

interface Deps {
  shared: Pick<OpenCircuits, 'opened' | 'closed'>;
  logger: Pick<Logger, 'info'>;
  report: ReportIncident;
  resetMs: number;
}

export function reportCircuitChanges(
  { shared, logger, report, resetMs }: Deps,
  owner: CircuitOwner,
): CircuitChanges {
  const whose = { webhookId: owner.webhookId, companyId: owner.companyId };
  return {
    onOpen(times) {
      shared.opened(owner, times);
      logger.info({ ...whose, resetMs }, 'circuit open');
      const detail = `most attempts of two minutes failed, the next one is made in ${resetMs} ms`;
      report({ type: 'circuit.opened', ...whose, detail });
    },
    onStayOpen(times) {
      shared.opened(owner, times);
      logger.info({ ...whose, resetMs }, 'circuit still open, the probe failed');
    },
    onClose() {
      shared.closed(owner);
      logger.info(whose, 'circuit closed');
      report({ type: 'circuit.closed', ...whose, detail: 'an attempt succeeded' });
    },
  };
}

/** Reports the circuit of a former URL as closed, if it was reported as open. */
export function reportUrlChanged(
  { shared, logger, report }: Deps,
  owner: CircuitOwner,
  wasOpen: boolean,
): void {
  shared.closed(owner);
  if (!wasOpen) return;
  const whose = { webhookId: owner.webhookId, companyId: owner.companyId };
  logger.info(whose, 'circuit closed, the URL was changed');
  report({ type: 'circuit.closed', ...whose, detail: 'the URL of the webhook was changed' });
}
