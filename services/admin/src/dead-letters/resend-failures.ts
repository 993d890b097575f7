import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { MarkedDelivery, ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import type { Resend, ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { freeOrphans } from '@posthorn/platform/mongo/resends/free-orphans.ts';
import type { ReplayBook, SkipReason } from './replay-tally.ts';

/** A delivery that has failed for good, and the letter that says so. */
export interface Failure {
  letterId: string;
  companyId: string;
  webhookId: string;
  deliveryId: string;
}

export type ResendFailures = (failures: readonly Failure[]) => Promise<void>;

export interface ResendFailuresDeps {
  isDryRun: boolean;
  book: ReplayBook;
  resends: Pick<ResendStore, 'insert' | 'remove' | 'findOne'>;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  /** Null when it was deleted. */
  findWebhook: (
    companyId: string,
    webhookId: string,
  ) => Promise<{ disabled: boolean; rateLimitPerSecond: number | null } | null>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

interface Page {
  companyId: string;
  webhookId: string;
  failures: readonly Failure[];
}

/** As many deliveries as the gateway sends at once of one resend, and two seconds' worth under a rate limit. */
const PAGE = 500;

/**
 * Notes resends that name these deliveries and marks them; the gateways send them, page by page and
 * within the limits of each endpoint. A delivery that has moved on since its letter is skipped.
 */
export function createResendFailures(deps: ResendFailuresDeps): ResendFailures {
  return async (failures) => {
    const once = withoutRepeats(deps, failures);
    const byWebhook = Map.groupBy(once, ({ companyId, webhookId }) => `${companyId}/${webhookId}`);
    for (const group of byWebhook.values()) await resendOfWebhook(deps, group);
  };
}

/** A crash may have written the letter of one delivery twice. */
function withoutRepeats({ book }: ResendFailuresDeps, failures: readonly Failure[]): Failure[] {
  const seen = new Set<string>();
  return failures.filter(({ letterId, deliveryId }) => {
    if (seen.has(deliveryId)) book.skipped(letterId, 'repeated');
    else return seen.add(deliveryId);
    return false;
  });
}

async function resendOfWebhook(
  deps: ResendFailuresDeps,
  failures: readonly Failure[],
): Promise<void> {
  const { companyId = '', webhookId = '' } = failures[0] ?? {};
  const webhook = await deps.findWebhook(companyId, webhookId);
  if (!webhook || webhook.disabled) {
    skipAll(deps, failures, webhook ? 'webhook_disabled' : 'webhook_deleted');
    return;
  }
  const perSecond = webhook.rateLimitPerSecond;
  const size = perSecond === null ? PAGE : Math.min(PAGE, perSecond * 2);
  for (let from = 0; from < failures.length; from += size) {
    const page = { companyId, webhookId, failures: failures.slice(from, from + size) };
    await resendPage(deps, { ...page, failures: await stillFailed(deps, page) });
  }
}

async function stillFailed(
  deps: ResendFailuresDeps,
  { companyId, failures }: Page,
): Promise<Failure[]> {
  const { marks, isDryRun, book } = deps;
  const read = () =>
    marks.read(
      companyId,
      failures.map(({ deliveryId }) => deliveryId),
    );
  let found = await read();
  if (!isDryRun && (await freeOrphans(deps, found))) found = await read();
  const byId = new Map(found.map((delivery) => [delivery.id, delivery]));
  return failures.filter(({ letterId, deliveryId }) => {
    const why = reasonAgainst(byId.get(deliveryId));
    if (why) book.skipped(letterId, why);
    return why === null;
  });
}

function reasonAgainst(delivery: MarkedDelivery | undefined): SkipReason | null {
  if (!delivery) return 'not_stored';
  const { status, mark } = delivery;
  if (status === 'delivered' || status === 'pending') return status;
  return mark?.state === 'asked' ? 'resend_running' : null;
}

async function resendPage(deps: ResendFailuresDeps, page: Page): Promise<void> {
  const { isDryRun, book, resends, marks } = deps;
  const { companyId, failures } = page;
  if (failures.length === 0) return;
  if (isDryRun) {
    for (const { letterId, deliveryId } of failures) book.resent(letterId, deliveryId, null);
    return;
  }
  const resend = toResend(deps, page);
  await resends.insert(resend);
  // Marked at once, so that a further letter of the same delivery finds it being resent.
  await marks.ask(resend);
  const found = await marks.read(companyId, resend.page);
  const mine = found.filter(({ mark }) => mark?.resendId === resend._id).map(({ id }) => id);
  if (mine.length === 0) {
    await resends.remove(resend);
    await marks.free(companyId, resend._id, resend.page);
  }
  for (const { letterId, deliveryId } of failures) {
    if (mine.includes(deliveryId)) book.resent(letterId, deliveryId, resend._id);
    else book.skipped(letterId, 'resend_running');
  }
}

/** Its page is all of it: the span ends with its last delivery. */
function toResend({ newId, nowMs }: ResendFailuresDeps, of: Page): Resend {
  const { companyId, webhookId, failures } = of;
  const page = failures.map(({ deliveryId }) => deliveryId).sort();
  const last = page.at(-1) ?? '';
  const now = new Date(nowMs());
  return {
    _id: newId('rsnd'),
    companyId,
    webhookId,
    afterId: page.length === 1 ? last : '',
    beforeId: last,
    page,
    status: 'running',
    total: page.length,
    succeeded: 0,
    failed: 0,
    createdAt: now,
    updatedAt: now,
  };
}

function skipAll(
  { book }: ResendFailuresDeps,
  failures: readonly Failure[],
  why: SkipReason,
): void {
  for (const { letterId } of failures) book.skipped(letterId, why);
}
