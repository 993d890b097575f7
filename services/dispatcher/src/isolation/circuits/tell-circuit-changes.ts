import type { ReportIncident } from '@posthorn/platform/operator-events/report-incidents.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

/** What is told when the circuit of an endpoint changes: to the next owner, in the log, to the operator. */
export interface CircuitChanges {
  /** The circuit opened; its probe is at this time. */
  onOpen: (probeAtMs: number) => void;
  /** A probe failed: it was open before, and is open until the next one. */
  onStayOpen: (probeAtMs: number) => void;
  onClose: () => void;
}

interface Deps {
  shared: Pick<OpenCircuits, 'opened' | 'closed'>;
  logger: Pick<Logger, 'info'>;
  report: ReportIncident;
  resetMs: number;
}

/** The webhook of a circuit. */
interface Owner {
  id: string;
  companyId: string;
}

export function tellCircuitChanges(
  { shared, logger, report, resetMs }: Deps,
  { id, companyId }: Owner,
): CircuitChanges {
  const whose = { webhookId: id, companyId };
  return {
    onOpen(probeAtMs) {
      shared.opened(id, probeAtMs);
      logger.info({ ...whose, resetMs }, 'circuit open');
      const detail = `most attempts of two minutes failed, the next one is made in ${resetMs} ms`;
      report({ type: 'circuit.opened', ...whose, detail });
    },
    onStayOpen(probeAtMs) {
      shared.opened(id, probeAtMs);
      logger.info({ ...whose, resetMs }, 'circuit still open, the probe failed');
    },
    onClose() {
      shared.closed(id);
      logger.info(whose, 'circuit closed');
      report({ type: 'circuit.closed', ...whose, detail: 'an attempt succeeded' });
    },
  };
}

/** Tells that the circuit of a former URL is gone: as closed, if it was told as open. */
export function tellUrlChanged(
  { shared, logger, report }: Deps,
  { id, companyId }: Owner,
  wasOpen: boolean,
): void {
  shared.closed(id);
  if (!wasOpen) return;
  const whose = { webhookId: id, companyId };
  logger.info(whose, 'circuit closed, the URL was changed');
  report({ type: 'circuit.closed', ...whose, detail: 'the URL of the webhook was changed' });
}
