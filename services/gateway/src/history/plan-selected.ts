import type { DeliveryFilter } from '@posthorn/domain/delivery/delivery-filter.ts';
import type { DeliveryStatus } from '@posthorn/domain/delivery/delivery.ts';
import type { UndeliveredStatus } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import {
  allCheckedToMs,
  type MessageChecks,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import type {
  SelectedDeliveries,
  SelectedPage,
  SelectionStep,
} from '@posthorn/platform/mongo/messages/selected-deliveries.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { ReadEnabledWebhooks } from './webhook-outlines.ts';

/** What a filter selects now. */
export interface Plan {
  deliveries: number;
  webhooks: number;
  /** False when a bound was reached: then there are at least so many. */
  isComplete: boolean;
}

export interface PlanDeps {
  selected: Pick<SelectedDeliveries, 'recorded' | 'unrecorded'>;
  checks: Pick<MessageChecks, 'positions'>;
  readEnabled: ReadEnabledWebhooks;
  nextSlice: NextSlice;
  /** Counts bytes that the request holds. Throws ApiError 503 when there is no room. */
  reserve: (bytes: number) => void;
  nowMs: () => number;
}

export interface Planned {
  companyId: string;
  filter: DeliveryFilter & { statuses: readonly DeliveryStatus[] };
}

/** A page of deliveries takes 5 ms. */
const PAGE = 1_000;
/** Deliveries or messages that a plan reads at most: about two seconds. */
const MOST_EXAMINED = 100_000;
const WITHIN_MS = 5_000;

/** Counts the pending deliveries that a cancellation of the filter would cancel now. */
export async function planCancellation(deps: PlanDeps, planned: Planned): Promise<Plan> {
  const counter = createCounter(deps);
  // What waits has a document.
  const unrecorded =
    planned.filter.waiting === undefined ? await countUnrecorded(deps, counter, planned) : NONE;
  await countRecorded(deps, counter, planned, 'pending', unrecorded);
  return counter.plan();
}

/** Counts the failed deliveries that a resend of the filter would send now: those to enabled webhooks. */
export async function planResend(
  deps: Omit<PlanDeps, 'checks' | 'reserve'>,
  planned: Planned,
): Promise<Plan> {
  const counter = createCounter(deps);
  for (const status of ['exhausted', 'cancelled'] as const) {
    if (!planned.filter.statuses.includes(status)) continue;
    await countRecorded(deps, counter, planned, status);
  }
  return counter.plan(await deps.readEnabled(planned.companyId, counter.webhookIds()));
}

const NONE: ReadonlySet<string> = new Set();

type Counter = ReturnType<typeof createCounter>;

function createCounter({ nextSlice, nowMs }: Pick<PlanDeps, 'nextSlice' | 'nowMs'>) {
  const byWebhook = new Map<string, number>();
  const untilMs = nowMs() + WITHIN_MS;
  let examined = 0;
  let isComplete = true;
  return {
    webhookIds: () => [...byWebhook.keys()],
    /** Counts the deliveries of all pages, until a bound is reached. */
    async count<Found extends { webhookId: string }>(
      read: (step: SelectionStep) => Promise<SelectedPage<Found>>,
    ): Promise<void> {
      for (let before: string | undefined; ;) {
        if (examined >= MOST_EXAMINED || nowMs() >= untilMs) {
          isComplete = false;
          return;
        }
        const page = await read({ before, limit: PAGE });
        for (const { webhookId } of page.found) {
          byWebhook.set(webhookId, (byWebhook.get(webhookId) ?? 0) + 1);
        }
        if (page.before === null) return;
        examined += page.examined;
        before = page.before;
        await nextSlice();
      }
    },
    /** With `only`, of these webhooks alone. */
    plan(only?: ReadonlySet<string>): Plan {
      const counts = [...byWebhook].filter(([id]) => only?.has(id) ?? true);
      const deliveries = counts.reduce((sum, [, count]) => sum + count, 0);
      return { deliveries, webhooks: counts.length, isComplete };
    },
  };
}

function countRecorded(
  { selected, nowMs }: Pick<PlanDeps, 'selected' | 'nowMs'>,
  counter: Counter,
  planned: Planned,
  status: UndeliveredStatus,
  counted = NONE,
): Promise<void> {
  const selection = { ...planned, beforeMs: nowMs() + 1 };
  return counter.count(async (step) => {
    const page = await selected.recorded(selection, status, step);
    return { ...page, found: page.found.filter(({ id }) => !counted.has(id)) };
  });
}

/** The bytes of an id in a set. */
const ID_BYTES = 100;

/**
 * Returns the ids of those that it has counted. They come before the recorded ones: one that is recorded meanwhile would
 * be missed by both, and is now found by both.
 */
async function countUnrecorded(
  { selected, checks, reserve, nowMs }: PlanDeps,
  counter: Counter,
  planned: Planned,
): Promise<ReadonlySet<string>> {
  const counted = new Set<string>();
  const sinceMs = allCheckedToMs(await checks.positions());
  const atMs = nowMs();
  const selection = { ...planned, beforeMs: atMs + 1 };
  await counter.count(async (step) => {
    const page = await selected.unrecorded(selection, { ...step, sinceMs, atMs });
    reserve(page.found.length * ID_BYTES);
    for (const { id } of page.found) counted.add(id);
    return page;
  });
  return counted;
}
