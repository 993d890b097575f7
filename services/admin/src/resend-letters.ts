import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { MarkedDelivery, Resend } from '@posthorn/domain/resend.ts';
import { freeOrphans, type ResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { ReplayReport, SkipReason } from './replay.ts';

/** A delivery that failed for good, and its dead letter. */
export interface Failure {
  letterId: string;
  companyId: string;
  webhookId: string;
  deliveryId: string;
}

export type ResendLetters = (failures: readonly Failure[]) => Promise<void>;

interface ResendLettersDeps {
  isDryRun: boolean;
  report: ReplayReport;
  resends: Pick<ResendStore, 'insert' | 'remove' | 'findOne'>;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  /** Null when the webhook was deleted. */
  findWebhook: (
    companyId: string,
    webhookId: string,
  ) => Promise<{ disabled: boolean; rateLimitPerSecond: number | null } | null>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** Failures of one webhook. */
interface Page {
  companyId: string;
  webhookId: string;
  failures: readonly Failure[];
}

/** The gateway sends as many deliveries of a resend at once, or two seconds' worth under a rate limit. */
const PAGE_SIZE = 500;

/**
 * Stores resends that name the deliveries, and marks the deliveries. The gateways send them page by page
 * within the limits of each endpoint. A delivery whose state has changed since its letter is skipped.
 */
export function createResendLetters(deps: ResendLettersDeps): ResendLetters {
  return async (failures) => {
    const { first, repeated } = separateRepeats(failures);
    skipAll(deps, repeated, 'repeated');
    const byWebhook = Map.groupBy(first, ({ companyId, webhookId }) => `${companyId}/${webhookId}`);
    for (const group of byWebhook.values()) await resendOfWebhook(deps, group);
  };
}

/** A crash may have written two letters of one delivery. */
function separateRepeats(failures: readonly Failure[]): {
  first: Failure[];
  repeated: Failure[];
} {
  const byDelivery = Map.groupBy(failures, ({ deliveryId }) => deliveryId);
  const groups = [...byDelivery.values()];
  return {
    first: groups.map((group) => requiredAt(group, 0, 'failure of the delivery')),
    repeated: groups.flatMap((group) => group.slice(1)),
  };
}

async function resendOfWebhook(
  deps: ResendLettersDeps,
  failures: readonly Failure[],
): Promise<void> {
  const { companyId, webhookId } = requiredAt(failures, 0, 'failure of the webhook');
  const webhook = await deps.findWebhook(companyId, webhookId);
  if (!webhook || webhook.disabled) {
    skipAll(deps, failures, webhook ? 'webhook_disabled' : 'webhook_deleted');
    return;
  }
  const perSecond = webhook.rateLimitPerSecond;
  const size = perSecond === null ? PAGE_SIZE : Math.min(PAGE_SIZE, perSecond * 2);
  for (let from = 0; from < failures.length; from += size) {
    await resendPage(deps, { companyId, webhookId, failures: failures.slice(from, from + size) });
  }
}

async function resendPage(deps: ResendLettersDeps, page: Page): Promise<void> {
  const { isDryRun, report } = deps;
  if (!isDryRun) await freeOrphansOf(deps, page);
  const reasons = await skipReasons(deps, page);
  const resendable: Failure[] = [];
  for (const failure of page.failures) {
    const reason = reasons.get(failure.deliveryId);
    if (reason === undefined) resendable.push(failure);
    else report.skipped(failure.letterId, reason);
  }
  if (resendable.length === 0) return;
  if (isDryRun) {
    for (const { letterId, deliveryId } of resendable) report.resent(letterId, deliveryId, null);
  } else {
    await storeResend(deps, { ...page, failures: resendable });
  }
}

/** Frees deliveries that a resend left marked when it ended. */
async function freeOrphansOf(deps: ResendLettersDeps, page: Page): Promise<void> {
  await freeOrphans(deps, await deps.marks.read(page.companyId, deliveryIdsOf(page)));
}

/** Returns why deliveries cannot be resent, by delivery id; nothing for those that can. */
async function skipReasons(
  { marks }: ResendLettersDeps,
  page: Page,
): Promise<Map<string, SkipReason>> {
  const deliveryIds = deliveryIdsOf(page);
  const found = await marks.read(page.companyId, deliveryIds);
  const byId = new Map(found.map((delivery) => [delivery.id, delivery]));
  const reasons = new Map<string, SkipReason>();
  for (const id of deliveryIds) {
    const reason = skipReasonOf(byId.get(id));
    if (reason) reasons.set(id, reason);
  }
  return reasons;
}

function skipReasonOf(delivery: MarkedDelivery | undefined): SkipReason | null {
  if (!delivery) return 'not_stored';
  const { status, mark } = delivery;
  if (status === 'delivered' || status === 'pending') return status;
  return mark?.state === 'asked' ? 'resend_running' : null;
}

async function storeResend(deps: ResendLettersDeps, page: Page): Promise<void> {
  const { report, resends, marks } = deps;
  const { companyId, failures } = page;
  const resend = newResend(deps, page);
  if (!(await resends.insert(resend))) {
    for (const { letterId } of failures) report.skipped(letterId, 'resend_running');
    return;
  }
  // Marked at once, so that another letter of the same delivery is skipped.
  await marks.ask(resend);
  const found = await marks.read(companyId, resend.page);
  const marked = new Set(
    found.filter(({ mark }) => mark?.resendId === resend.id).map(({ id }) => id),
  );
  if (marked.size === 0) {
    await resends.remove(resend);
    await marks.free(companyId, resend.id, resend.page);
  }
  for (const { letterId, deliveryId } of failures) {
    if (marked.has(deliveryId)) report.resent(letterId, deliveryId, resend.id);
    else report.skipped(letterId, 'resend_running');
  }
}

/** Returns a resend with one page: its span ends with the last delivery of the page. */
function newResend(
  { newId, nowMs }: ResendLettersDeps,
  { companyId, webhookId, failures }: Page,
): Resend {
  const page = failures.map(({ deliveryId }) => deliveryId).sort();
  const last = requiredAt(page, page.length - 1, 'delivery of the page');
  const atMs = nowMs();
  return {
    id: newId('rsnd'),
    companyId,
    webhookId,
    appId: null,
    partOf: null,
    outcome: null,
    afterId: page.length === 1 ? last : '',
    beforeId: last,
    page,
    status: 'running',
    progress: null,
    scannedTo: '',
    dueAtMs: atMs,
    abortAskedAtMs: null,
    total: page.length,
    succeeded: 0,
    failed: 0,
    createdAtMs: atMs,
    updatedAtMs: atMs,
  };
}

function deliveryIdsOf({ failures }: Page): string[] {
  return failures.map(({ deliveryId }) => deliveryId);
}

function skipAll(
  { report }: ResendLettersDeps,
  failures: readonly Failure[],
  reason: SkipReason,
): void {
  for (const { letterId } of failures) report.skipped(letterId, reason);
}
