import { cancelReasonOf } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { CancelReason } from '@posthorn/domain/delivery/delivery.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type {
  WaitingDelivery,
  WaitingDeliveries,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldStates, WebhookHolders } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { createLeasedLoop, type LeaseHolder } from '@posthorn/platform/work/leased-loop.ts';
import type { RetryMetrics } from '../metrics.ts';
import { cancelWaiting, type CancelWaitingDeps } from '../work/cancel-waiting.ts';

interface EndExpiredDeps
  extends LeaseHolder, CancelWaitingDeps, Pick<DatabaseTime, 'nowMs' | 'earlierMs'> {
  waiting: Pick<WaitingDeliveries, 'expiredAt'>;
  holds: Pick<HoldStates, 'holdersOf'>;
  metrics: Pick<RetryMetrics, 'finished'>;
  logger: Logger;
}

const EVERY_MS = 2_000;
/** Of each day at once. */
const PAGE = 200;

/**
 * Ends the deliveries on hold whose message has expired (docs/contract.md C7.15), by one process at a time: as they would
 * end at their release, which may be weeks later. A tick ends when nothing is left. A page that a crash interrupts is
 * found again.
 */
export function createEndExpired(deps: EndExpiredDeps): Loop {
  return createLeasedLoop({
    ...deps,
    name: 'end of expired deliveries on hold',
    lease: 'expired-deliveries',
    everyMs: EVERY_MS,
    keepsLease: true,
    async run(keep) {
      while (await keep()) if (!(await endPage(deps))) return;
    },
  });
}

/** Returns false when nothing has expired. */
async function endPage(deps: EndExpiredDeps): Promise<boolean> {
  const { waiting, holds, metrics, earlierMs, logger } = deps;
  const page = await waiting.expiredAt(earlierMs(), PAGE);
  if (page.length === 0) return false;
  const ofWebhooks = new Map(page.map((each) => [each.webhookId, each]));
  const holders = await holds.holdersOf([...ofWebhooks.values()]);
  const matched = await cancelWaiting(deps, page, (each) => reasonOf(each, holders));
  // Others were released, or cancelled by a client, since they were read.
  if (matched === 0) return true;
  metrics.finished.inc({ result: 'cancelled' }, matched);
  logger.info({ deliveries: matched }, 'cancelled expired deliveries on hold');
  return true;
}

/** A client may have cancelled what is pending: each delivery is shown with that reason already, and keeps it. */
function reasonOf(
  { webhookId, createdAtMs }: WaitingDelivery,
  holders: ReadonlyMap<string, WebhookHolders>,
): CancelReason {
  const webhook = holders.get(webhookId)?.webhook;
  return cancelReasonOf(webhook, { createdAtMs, trigger: 'retry' }) ?? 'expired';
}
