import { type AskedHold, beginHold } from '@posthorn/domain/waiting.ts';
import { DAY_MS } from '@posthorn/domain/ids.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents.ts';
import type { WaitingDeliveries } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import { dueNowMs } from '@posthorn/platform/mongo/work-notes.ts';
import type { HoldNotes, HoldPlace } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { invalidRequest } from '../api-error.ts';
import type { Apps } from '../projects/apps.ts';
import type { ChangeWebhook } from '../webhooks/webhooks.ts';

interface HoldDeps {
  notes: Pick<HoldNotes, 'touch' | 'hasAny'>;
  waiting: Pick<WaitingDeliveries, 'count'>;
  changeWebhook: ChangeWebhook;
  apps: Pick<Apps, 'get' | 'setHeld'>;
  /** Starts the work now instead of within a second. */
  wake: () => void;
  /** How long deliveries are kept, in milliseconds. */
  retentionMs: () => number;
  nowMs: () => number;
}

interface OwnWebhook {
  companyId: string;
  webhookId: string;
}

interface OwnApp {
  companyId: string;
  appId: string;
}

type WebhookInTree = Pick<Webhook, 'id' | 'companyId' | 'appId'>;

/**
 * Begins and ends holds. Each change writes the note first (docs/decisions/0014-long-work-leaves-a-note-first.md), so that
 * whatever begins to wait is released, whenever this process ends. Throws ApiError 404 for an unknown webhook or app, and
 * 400 for an end in the past, or so late that deliveries would expire before it.
 */
export interface Holds {
  holdWebhook: (which: OwnWebhook, asked: AskedHold) => Promise<Changed<Webhook>>;
  holdApp: (which: OwnApp, asked: AskedHold) => Promise<Changed<AppDocument>>;
  /** Waiting deliveries are released, at most so many a second of each webhook. May be repeated. */
  resumeWebhook: (which: OwnWebhook, ratePerSecond?: number) => Promise<Changed<Webhook>>;
  resumeApp: (which: OwnApp, ratePerSecond?: number) => Promise<Changed<AppDocument>>;
  /** To be called when a webhook was disabled or enabled: the waiting deliveries of a disabled one are cancelled. */
  onDisabledOrEnabled: (
    webhook: WebhookInTree & Pick<Webhook, 'held' | 'ordering'>,
  ) => Promise<void>;
  /** To be called when `ordering` of a webhook was changed: keys that are blocked may go on. */
  onOrderingChanged: (webhook: WebhookInTree) => Promise<void>;
  /** How many deliveries to the webhook wait; counted up to 100,000. */
  countWaiting: (webhook: WebhookInTree) => Promise<number>;
}

/** The hold is looked at soon afterwards, in case this process ends before it is stored. */
const LOOK_AFTER_MS = 1_000;
const MOST_COUNTED = 100_000;

export function createHolds(deps: HoldDeps): Holds {
  const { notes, waiting, changeWebhook, apps, wake, nowMs } = deps;
  async function touchNow({ id, companyId }: WebhookInTree): Promise<void> {
    const atMs = nowMs();
    await notes.touch({ id, companyId, kind: 'webhook' }, { atMs, dueAtMs: dueNowMs(atMs) });
  }
  return {
    async holdWebhook(which, asked) {
      // Before anything is stored: an unknown webhook gets no note.
      await changeWebhook(which, () => null);
      await noteHold(deps, placeOf(which), asked);
      return changeWebhook(which, ({ held }) => {
        const begun = beginHold(held, asked, nowMs());
        return begun && { held: begun };
      });
    },
    async holdApp(which, asked) {
      await apps.get(which.companyId, which.appId);
      await noteHold(deps, placeOf(which), asked);
      return apps.setHeld(which, (seen) => beginHold(seen, asked, nowMs()) ?? undefined);
    },
    async resumeWebhook(which, ratePerSecond) {
      await changeWebhook(which, () => null);
      return resume(deps, { place: placeOf(which), ratePerSecond }, () =>
        changeWebhook(which, ({ held }) => (held ? { held: null } : null)),
      );
    },
    async resumeApp(which, ratePerSecond) {
      await apps.get(which.companyId, which.appId);
      return resume(deps, { place: placeOf(which), ratePerSecond }, () =>
        apps.setHeld(which, (seen) => (seen ? null : undefined)),
      );
    },
    async onDisabledOrEnabled(webhook) {
      const { held, ordering } = webhook;
      const mayWait = held !== null || ordering !== 'none';
      // The note of a hold goes while its webhook is disabled. What waits without a note is found by the sweep of the
      // retry service within five minutes.
      if (mayWait || (await notes.hasAny(holderIdsOf(webhook)))) await touchNow(webhook);
    },
    async onOrderingChanged(webhook) {
      await touchNow(webhook);
      wake();
    },
    async countWaiting(webhook) {
      if (!(await notes.hasAny(holderIdsOf(webhook)))) return 0;
      const { id: webhookId, companyId } = webhook;
      return waiting.count({ companyId, webhookId }, MOST_COUNTED);
    },
  };
}

/** The ids of everything by whose hold its deliveries may wait. */
function holderIdsOf({ id, companyId, appId }: WebhookInTree): string[] {
  return [id, companyId, ...(appId === null ? [] : [appId])];
}

function noteHold(deps: HoldDeps, place: HoldPlace, { untilMs }: AskedHold): Promise<void> {
  assertEnd(deps, untilMs ?? null);
  const atMs = deps.nowMs();
  // A hold that is left as it is may have an end: the first look at the note knows.
  const hold = {
    ...(untilMs !== undefined && { isOpenEnded: untilMs === null }),
    ratePerSecond: null,
  };
  return deps.notes.touch(place, { atMs, dueAtMs: atMs + LOOK_AFTER_MS, ...hold });
}

interface Resumed {
  place: HoldPlace;
  ratePerSecond: number | undefined;
}

/** Writes the note before the change, and again after it: a look at it may have found the hold alive in between. */
async function resume<Result>(
  { notes, wake, nowMs }: HoldDeps,
  { place, ratePerSecond }: Resumed,
  end: () => Promise<Result>,
): Promise<Result> {
  const touch = async (): Promise<void> => {
    const atMs = nowMs();
    const hold = { isOpenEnded: false, ratePerSecond: ratePerSecond ?? null };
    await notes.touch(place, { atMs, dueAtMs: dueNowMs(atMs), ...hold });
  };
  await touch();
  const ended = await end();
  await touch();
  wake();
  return ended;
}

function placeOf(which: OwnWebhook | OwnApp): HoldPlace {
  const { companyId } = which;
  return 'webhookId' in which
    ? { id: which.webhookId, companyId, kind: 'webhook' }
    : { id: which.appId, companyId, kind: 'app' };
}

/** Waiting deliveries are cancelled one day before they expire, so a longer hold would lose the first of them. */
function assertEnd({ retentionMs, nowMs }: HoldDeps, untilMs: number | null): void {
  if (untilMs === null) return;
  if (untilMs <= nowMs()) {
    throw invalidRequest([{ path: 'until', message: 'must be in the future' }]);
  }
  if (untilMs - nowMs() <= retentionMs() - DAY_MS) return;
  const days = Math.floor(retentionMs() / DAY_MS) - 1;
  throw invalidRequest([{ path: 'until', message: `must be within ${days} days` }]);
}
