import { isFinal, type Delivery } from '@posthorn/domain/delivery.ts';
import { firstIdAt, type IdPrefix } from '@posthorn/domain/ids.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { MarkedDelivery, ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import type { Resend, ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { freeOrphans } from '@posthorn/platform/mongo/resends/free-orphans.ts';
import { ApiError, notFound } from '../http/api-error.ts';

export interface StartResendDeps {
  webhooks: Pick<WebhookStore, 'findOne'>;
  hasApp: (companyId: string, appId: string) => Promise<boolean>;
  resends: Pick<ResendStore, 'insert' | 'remove' | 'count' | 'findOne'>;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  /** Lets the work begin now instead of at the next round. */
  wake: (resend: Resend) => void;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

export interface FailedSpan {
  companyId: string;
  sinceMs: number;
  /** Null: up to now. */
  untilMs: number | null;
}

export interface StartResend {
  /** Throws ApiError 409 while the delivery is pending or being resent, or when it has nowhere to go. */
  one: (delivery: Delivery) => Promise<void>;
  /** Throws ApiError 404 without such a webhook, 409 when it is disabled. */
  failed: (span: FailedSpan & { webhookId: string }) => Promise<Resend>;
  /** Throws ApiError 404 without such an app, 409 while another resend of it runs. */
  failedOfApp: (span: FailedSpan & { appId: string }) => Promise<Resend>;
}

/** Step 6, resend: what is asked for is stored before anything is sent; run-resends does the rest. */
export function createStartResend(deps: StartResendDeps): StartResend {
  const { webhooks, hasApp, resends, marks, wake } = deps;
  return {
    async one({ id, companyId, webhookId, status }) {
      if (!isFinal(status)) throw stillPending();
      const webhook = await webhooks.findOne(companyId, webhookId);
      if (!webhook) throw conflict('webhook_deleted', 'The webhook of this delivery was deleted.');
      assertEnabled(webhook);
      const span = { companyId, webhookId, afterId: id, beforeId: id };
      const resend = { ...newResend(deps, span), page: [id], total: 1 };
      await resends.insert(resend);
      const marked = await mark(deps, resend);
      if (marked?.mark?.resendId !== resend._id) {
        await resends.remove(resend);
        // Another process may have found the resend and marked the delivery for it meanwhile.
        await marks.free(companyId, resend._id, [id]);
        throw marked ? conflict('resend_running', RUNNING) : stillPending();
      }
      wake(resend);
    },
    async failed({ webhookId, ...span }) {
      const webhook = await webhooks.findOne(span.companyId, webhookId);
      if (!webhook) throw notFound('webhook');
      assertEnabled(webhook);
      return startSpan(deps, span, { webhookId });
    },
    async failedOfApp({ appId, ...span }) {
      if (!(await hasApp(span.companyId, appId))) throw notFound('app');
      return startSpan(deps, span, { webhookId: null, appId });
    },
  };
}

async function startSpan(
  deps: StartResendDeps,
  { companyId, sinceMs, untilMs }: FailedSpan,
  owner: Pick<Resend, 'webhookId' | 'appId'>,
): Promise<Resend> {
  const afterId = firstIdAt('dlv', sinceMs);
  const beforeId = firstIdAt('dlv', (untilMs ?? deps.nowMs()) + 1);
  const resend = newResend(deps, { companyId, ...owner, afterId, beforeId });
  resend.total = await deps.resends.count(resend);
  if (!(await deps.resends.insert(resend))) throw conflict('resend_running', RUNNING);
  deps.wake(resend);
  return resend;
}

const RUNNING = 'It is being sent again already.';

async function mark(deps: StartResendDeps, resend: Resend): Promise<MarkedDelivery | undefined> {
  const { marks } = deps;
  const read = async () => (await marks.read(resend.companyId, resend.page))[0];
  await marks.ask(resend);
  const marked = await read();
  if (!marked || marked.mark?.resendId === resend._id) return marked;
  if (!(await freeOrphans(deps, [marked]))) return marked;
  await marks.ask(resend);
  return read();
}

function newResend(
  { newId, nowMs }: StartResendDeps,
  span: Pick<Resend, 'companyId' | 'webhookId' | 'appId' | 'afterId' | 'beforeId'>,
): Resend {
  const now = new Date(nowMs());
  const counts = { total: 0, succeeded: 0, failed: 0 };
  return {
    _id: newId('rsnd'),
    ...span,
    page: [],
    status: 'running',
    ...counts,
    createdAt: now,
    updatedAt: now,
  };
}

function assertEnabled({ disabled }: Webhook): void {
  if (disabled) throw conflict('webhook_disabled', 'The webhook is disabled; enable it first.');
}

const conflict = (code: string, message: string): ApiError => new ApiError(409, code, message);

function stillPending(): ApiError {
  return conflict('delivery_pending', 'The delivery is pending; it is sent again by itself.');
}
