import { CANCELLED_BY_CLIENT } from '@posthorn/domain/delivery/when-cancelled.ts';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import { type Delivery, isFinal, type Outcome } from '@posthorn/domain/delivery/delivery.ts';
import {
  type MarkedDelivery,
  replayWants,
  type Resend,
  type ResendFilter,
} from '@posthorn/domain/resend.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { freeOrphans, type ResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { replaySpanOf, type ReplayStore } from '@posthorn/platform/mongo/messages/replays.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { readDelivery, type ReadDelivery, type ReadDeps } from '../history/deliveries.ts';
import { ApiError, invalidRequest, notFound } from '../api-error.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { Apps } from '../projects/apps.ts';
import { storeCancelled, type StoreCancelledDeps } from '../webhooks/cancel-deliveries.ts';

interface StartResendDeps {
  webhooks: Pick<WebhookStore, 'findOne'>;
  apps: Pick<Apps, 'has'>;
  resends: Pick<ResendStore, 'insert' | 'remove' | 'count' | 'findOne'>;
  replays: ReplayStore;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  /** Starts the work now instead of within a second. */
  wake: () => void;
  nowMs: () => number;
  /** When a resend is due that is to begin now, by the time of the database. */
  dueNowMs: () => number;
}

/** The failed deliveries that were created from `sinceMs` to `untilMs`, both inclusive. */
export interface FailedSpan {
  companyId: string;
  sinceMs: number;
  /** Null for now. */
  untilMs: number | null;
}

/** `id` is that of the resend. */
type NewSpan = FailedSpan & { id: string };

export interface StartResend {
  /**
   * Throws ApiError 409 while the delivery is pending or being resent, and when its webhook is deleted
   * or disabled.
   */
  ofDelivery: (delivery: Delivery, resendId: string) => Promise<void>;
  /** Throws ApiError 404 for an unknown webhook, 409 when it is disabled and while another such resend of it runs. */
  ofWebhook: (span: NewSpan & { webhookId: string; outcome: Outcome | null }) => Promise<Resend>;
  /** Throws ApiError 404 for an unknown app, 409 while another resend of it runs. */
  ofApp: (span: NewSpan & { appId: string }) => Promise<Resend>;
  /**
   * Sends the failed deliveries that the filter selects, to one webhook or to all enabled ones of an app or the company.
   * `total` is their number by its plan. Throws as the others do, and 409 while another one of the whole company runs.
   */
  ofFilter: (span: NewSpan & FilteredSpan) => Promise<Resend>;
  /**
   * Returns how many deliveries such a resend would send again now. Throws ApiError 404 for an unknown webhook or
   * app.
   */
  countOfWebhook: (span: FailedSpan & { webhookId: string }) => Promise<number>;
  countOfApp: (span: FailedSpan & { appId: string }) => Promise<number>;
  /**
   * Sends the messages of the webhook's app in the span that it is no target of and would receive now. Throws ApiError
   * 404 for an unknown webhook, 400 for a global one, 409 when it is disabled and while a resend or replay of it runs.
   */
  ofMissing: (span: NewSpan & ReplayChoice) => Promise<Resend>;
  /** Returns how many messages such a replay would send now, among the first 100,000 of the span. */
  countOfMissing: (span: FailedSpan & ReplayChoice) => Promise<number>;
}

interface FilteredSpan {
  /** Null for all. */
  webhookId: string | null;
  filter: ResendFilter;
  total: number;
}

interface ReplayChoice {
  webhookId: string;
  /** Empty for all that the webhook receives. */
  eventTypes: readonly string[];
  nextSlice: NextSlice;
}

/** Stores a resend before anything is sent. The retry service does the sending. */
export function createStartResend(deps: StartResendDeps): StartResend {
  const { webhooks, apps, resends, marks, wake } = deps;
  return {
    async ofDelivery({ id, companyId, webhookId, status }, resendId) {
      if (!isFinal(status)) throw new ApiError('delivery_pending');
      const webhook = await webhooks.findOne(companyId, webhookId);
      if (!webhook) throw new ApiError('webhook_deleted');
      assertEnabled(webhook);
      const chosen = { webhookId, appId: null, outcome: null };
      const span = { companyId, ...chosen, afterId: id, beforeId: id };
      const resend = { ...newResend(deps, span, resendId), page: [id], total: 1 };
      await resends.insert(resend);
      const marked = await mark(deps, resend);
      if (marked?.mark?.resendId !== resend.id) {
        await resends.remove(resend);
        // Another process may have found the resend in between and marked the delivery for it.
        await marks.free(companyId, resend.id, [id]);
        throw new ApiError(marked ? 'resend_running' : 'delivery_pending');
      }
      wake();
    },
    async ofWebhook({ webhookId, outcome, ...span }) {
      const webhook = await webhooks.findOne(span.companyId, webhookId);
      if (!webhook) throw notFound('webhook');
      assertEnabled(webhook);
      return startSpan(deps, span, { webhookId, appId: null, outcome });
    },
    async ofApp({ appId, ...span }) {
      if (!(await apps.has(span.companyId, appId))) throw notFound('app');
      return startSpan(deps, span, { webhookId: null, appId, outcome: null });
    },
    ofFilter: (asked) => startFiltered(deps, asked),
    async countOfWebhook({ webhookId, ...span }) {
      if (!(await webhooks.findOne(span.companyId, webhookId))) throw notFound('webhook');
      return resends.count(resendOf(deps, span, { webhookId, appId: null, outcome: null }));
    },
    async countOfApp({ appId, ...span }) {
      if (!(await apps.has(span.companyId, appId))) throw notFound('app');
      return resends.count(resendOf(deps, span, { webhookId: null, appId, outcome: null }));
    },
    ...createStartReplay(deps),
  };
}

async function startFiltered(
  deps: StartResendDeps,
  { webhookId, filter, total, ...span }: NewSpan & FilteredSpan,
): Promise<Resend> {
  const { appId = null } = filter;
  if (appId !== null && !(await deps.apps.has(span.companyId, appId))) throw notFound('app');
  if (webhookId !== null) {
    const webhook = await deps.webhooks.findOne(span.companyId, webhookId);
    if (!webhook) throw notFound('webhook');
    assertEnabled(webhook);
  }
  // Of one webhook it is a resend of that, whatever the app of its messages.
  const chosen = { webhookId, appId: webhookId === null ? appId : null, outcome: null };
  return store(deps, { ...resendOf(deps, span, chosen, span.id), filter, total });
}

function createStartReplay(
  deps: StartResendDeps,
): Pick<StartResend, 'ofMissing' | 'countOfMissing'> {
  return {
    async ofMissing({ nextSlice, ...asked }) {
      const webhook = await webhookOfApp(deps, asked);
      assertEnabled(webhook);
      const replay = replayOf(deps, asked, asked.id);
      replay.total = await countMissing(deps, webhook, replay, nextSlice);
      return store(deps, replay);
    },
    async countOfMissing({ nextSlice, ...asked }) {
      const webhook = await webhookOfApp(deps, asked);
      return countMissing(deps, webhook, replayOf(deps, asked, ''), nextSlice);
    },
  };
}

/** Messages that a count examines at a time, and at most: an app may have millions in a month. */
const COUNTED = { page: 1_000, most: 100_000 };

/** Returns how many messages the webhook would get, among the first 100,000 of the span. */
async function countMissing(
  { replays }: StartResendDeps,
  webhook: Pick<Webhook, 'appId' | 'eventTypes'>,
  replay: Resend,
  nextSlice: NextSlice,
): Promise<number> {
  const wants = replayWants(webhook, replay);
  let span = replaySpanOf(webhook, replay);
  let total = 0;
  for (let examined = 0; examined < COUNTED.most; examined += COUNTED.page) {
    const { ids, erased, readTo } = await replays.findMissing(span, wants, COUNTED.page);
    total += ids.length - erased;
    if (readTo === null) break;
    span = { ...span, afterId: readTo };
    await nextSlice();
  }
  return total;
}

/** The messages of no app go to a global webhook. */
async function webhookOfApp(
  { webhooks }: StartResendDeps,
  { companyId, webhookId }: { companyId: string; webhookId: string },
): Promise<Webhook> {
  const webhook = await webhooks.findOne(companyId, webhookId);
  if (!webhook) throw notFound('webhook');
  if (webhook.appId !== null) return webhook;
  throw invalidRequest([
    { path: 'webhookId', message: 'is a global webhook, to which no message of an app goes' },
  ]);
}

function replayOf(
  deps: StartResendDeps,
  {
    companyId,
    sinceMs,
    untilMs,
    webhookId,
    eventTypes,
  }: FailedSpan & Omit<ReplayChoice, 'nextSlice'>,
  id: string,
): Resend {
  const afterId = firstIdAt('msg', sinceMs);
  const beforeId = firstIdAt('msg', (untilMs ?? deps.nowMs()) + 1);
  const chosen = { webhookId, appId: null, outcome: null };
  const resend = newResend(deps, { companyId, ...chosen, afterId, beforeId }, id);
  return { ...resend, kind: 'replay', eventTypes: [...eventTypes] };
}

type Chosen = Pick<Resend, 'webhookId' | 'appId' | 'outcome'>;

function resendOf(
  deps: StartResendDeps,
  { companyId, sinceMs, untilMs }: FailedSpan,
  chosen: Chosen,
  // Without one, it is for counting only.
  id = '',
): Resend {
  const afterId = firstIdAt('dlv', sinceMs);
  const beforeId = firstIdAt('dlv', (untilMs ?? deps.nowMs()) + 1);
  return newResend(deps, { companyId, ...chosen, afterId, beforeId }, id);
}

async function startSpan(deps: StartResendDeps, span: NewSpan, chosen: Chosen): Promise<Resend> {
  const { resends } = deps;
  const resend = resendOf(deps, span, chosen, span.id);
  resend.total = await resends.count(resend);
  return store(deps, resend);
}

async function store({ resends, wake }: StartResendDeps, resend: Resend): Promise<Resend> {
  if (!(await resends.insert(resend))) {
    // A repeat finds the resend that it started before.
    const own = await resends.findOne(resend.companyId, resend.id);
    if (!own) throw new ApiError('resend_running');
    return own;
  }
  wake();
  return resend;
}

async function mark(deps: StartResendDeps, resend: Resend): Promise<MarkedDelivery | undefined> {
  const { marks } = deps;
  const read = async () => (await marks.read(resend.companyId, resend.page))[0];
  await marks.ask(resend);
  const marked = await read();
  if (!marked || marked.mark?.resendId === resend.id) return marked;
  if (!(await freeOrphans(deps, [marked]))) return marked;
  await marks.ask(resend);
  return read();
}

function newResend(
  { nowMs, dueNowMs }: StartResendDeps,
  span: Pick<Resend, 'companyId' | 'afterId' | 'beforeId'> & Chosen,
  id: string,
): Resend {
  const atMs = nowMs();
  const counts = { total: 0, succeeded: 0, failed: 0 };
  return {
    id,
    kind: 'resend',
    partOf: null,
    filter: null,
    ...span,
    eventTypes: [],
    page: [],
    status: 'running',
    progress: null,
    scannedTo: '',
    dueAtMs: dueNowMs(),
    abortAskedAtMs: null,
    ...counts,
    createdAtMs: atMs,
    updatedAtMs: atMs,
  };
}

function assertEnabled({ disabled }: Webhook): void {
  if (disabled) throw new ApiError('webhook_disabled');
}

interface ResendDeliveryDeps extends ReadDeps, StoreCancelledDeps {
  startResend: Pick<StartResend, 'ofDelivery'>;
}

interface AskedResend {
  companyId: string;
  deliveryId: string;
  /** Of the resend. */
  id: string;
}

/**
 * Starts the resend of one delivery and returns the delivery as it was before. Throws ApiError 404 for an
 * unknown delivery, 409 as StartResend does and when the payload was erased.
 */
export async function resendDelivery(
  deps: ResendDeliveryDeps,
  { companyId, deliveryId, id }: AskedResend,
): Promise<ReadDelivery> {
  const found = await readDelivery(deps, companyId, deliveryId);
  if (!found) throw notFound('delivery');
  if (found.isPayloadErased) throw new ApiError('payload_erased');
  const { source } = found;
  // Cancelling all of a webhook is one write there: this one may be stored as pending, which no resend is made of.
  if (source.reason === CANCELLED_BY_CLIENT) await storeCancelled(deps, source, source.reason);
  await deps.startResend.ofDelivery(source, id);
  return found;
}
