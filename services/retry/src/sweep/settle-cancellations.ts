import type { Loop } from '@posthorn/platform/async/loop.ts';
import {
  allCheckedToMs,
  type MessageChecks,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type {
  CancellationStore,
  CancellingWebhook,
  CancelStep,
} from '@posthorn/platform/mongo/webhooks/cancellations.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  createLeasedLoop,
  type KeepLease,
  type LeaseHolder,
} from '@posthorn/platform/work/leased-loop.ts';
import type { RetryMetrics } from '../metrics.ts';

interface SettleCancellationsDeps extends LeaseHolder {
  cancellations: CancellationStore;
  checks: Pick<MessageChecks, 'positions'>;
  sequences: Pick<SequenceStore, 'makeAllDue'>;
  metrics: Pick<RetryMetrics, 'finished'>;
  nowMs: () => number;
  monotonicMs: () => number;
  logger: Logger;
}

const EVERY_MS = 1_000;
/** Webhooks of a company whose deliveries are cancelled in turns. */
const AT_ONCE = 20;
/** A page takes 20 to 50 ms: a million deliveries take about half a minute. */
const PAGE = 1_000;

/**
 * A dispatcher may use a webhook that is two seconds old, and records an attempt that fails then as pending: what is
 * recorded is looked through again after this time.
 */
export const LATE_AFTER_MS = 10_000;

/** How far the pass over a webhook has come: over what is recorded, over the messages, over what was recorded late. */
interface Pass extends CancellingWebhook {
  step: 'recorded' | 'unrecorded' | 'recorded_late';
  before: string | undefined;
  pages: number;
  cancelled: number;
  /** By the monotonic clock. */
  beganAtMs: number;
}

type Passes = Map<string, Pass>;

/**
 * Stores the cancellations of a client's `cancel-pending` (docs/contract.md C25.2). The dispatchers do not wait for it:
 * the time at the webhook stops attempts. A tick ends when nothing is left, and does nothing while another process has
 * the lease. A pass that a crash ends is begun again.
 */
export function createSettleCancellations(deps: SettleCancellationsDeps): Loop {
  const passes: Passes = new Map();
  return createLeasedLoop({
    ...deps,
    name: 'settlement of cancellations',
    lease: 'settle-cancellations',
    everyMs: EVERY_MS,
    async run(keep) {
      const any = { afterCompanyId: '', exceptIds: [], limit: 1 };
      if ((await deps.cancellations.nextCancelling(any)).length === 0) return;
      if (await keep()) await settleAll(deps, passes, keep);
    },
  });
}

/** One page of each company in turn, until nothing is left but to wait. */
async function settleAll(
  deps: SettleCancellationsDeps,
  passes: Passes,
  keep: KeepLease,
): Promise<void> {
  let readAtMs = -Infinity;
  for (let isDone = false; !isDone;) {
    const nowMs = deps.monotonicMs();
    if (nowMs - readAtMs >= EVERY_MS) {
      await readAgain(deps, passes);
      readAtMs = nowMs;
    }
    isDone = true;
    for (let pass = await nextOf(deps, passes, ''); pass !== null;) {
      isDone = false;
      await settlePage(deps, pass, passes);
      if (!(await keep())) return;
      pass = await nextOf(deps, passes, pass.companyId);
    }
  }
}

/** A client may ask again, for a later time, and a webhook may be deleted, while its pass is under way. */
async function readAgain(deps: SettleCancellationsDeps, passes: Passes): Promise<void> {
  if (passes.size === 0) return;
  const current = await deps.cancellations.read([...passes.keys()]);
  const known = current.map((webhook) => passOf(deps, webhook, passes));
  passes.clear();
  for (const pass of known) passes.set(pass.webhookId, pass);
}

/** Returns the pass of the next company, over its webhook that had the fewest pages; null behind the last one. */
async function nextOf(
  deps: SettleCancellationsDeps,
  passes: Passes,
  afterCompanyId: string,
): Promise<Pass | null> {
  // They would keep the places of others for ten seconds.
  const waiting = [...passes.values()].filter((pass) => isWaiting(deps, pass));
  const exceptIds = waiting.map(({ webhookId }) => webhookId);
  const { cancellations } = deps;
  const found = await cancellations.nextCancelling({ afterCompanyId, exceptIds, limit: AT_ONCE });
  const [first, ...others] = found.map((webhook) => passOf(deps, webhook, passes));
  if (!first) return null;
  const next = others.reduce((least, each) => (each.pages < least.pages ? each : least), first);
  passes.set(next.webhookId, next);
  return next;
}

/** Begins again for a later time. */
function passOf(
  { monotonicMs }: SettleCancellationsDeps,
  webhook: CancellingWebhook,
  passes: Passes,
): Pass {
  const known = passes.get(webhook.webhookId);
  if (known?.cancelBeforeMs === webhook.cancelBeforeMs) return known;
  return {
    ...webhook,
    step: 'recorded',
    before: undefined,
    pages: 0,
    cancelled: 0,
    beganAtMs: monotonicMs(),
  };
}

function isWaiting({ monotonicMs }: SettleCancellationsDeps, { step, beganAtMs }: Pass): boolean {
  return step === 'recorded_late' && monotonicMs() - beganAtMs < LATE_AFTER_MS;
}

async function settlePage(
  deps: SettleCancellationsDeps,
  pass: Pass,
  passes: Passes,
): Promise<void> {
  const { cancellations, checks, metrics, logger, nowMs } = deps;
  const step: CancelStep = { before: pass.before, limit: PAGE, atMs: nowMs() };
  const page =
    pass.step === 'unrecorded'
      ? await cancellations.cancelUnrecorded(pass, {
          ...step,
          sinceMs: allCheckedToMs(await checks.positions()),
        })
      : await cancellations.cancelRecorded(pass, step);
  pass.pages += 1;
  pass.cancelled += page.cancelled;
  metrics.finished.inc({ result: 'cancelled' }, page.cancelled);
  pass.before = page.before ?? undefined;
  if (page.before !== null) return;
  // Messages that came later may wait behind what is cancelled now.
  await deps.sequences.makeAllDue(pass, 'all', nowMs());
  if (pass.step !== 'recorded_late') {
    pass.step = pass.step === 'recorded' ? 'unrecorded' : 'recorded_late';
    return;
  }
  await cancellations.finish(pass);
  passes.delete(pass.webhookId);
  const { webhookId, companyId, cancelled } = pass;
  logger.info({ webhookId, companyId, cancelled }, 'cancelled pending deliveries for a client');
}
