import { factsOf, matches } from '@posthorn/domain/filter.ts';
import type { NoTargetReason, NotStored } from '@posthorn/domain/message.ts';
import type { GivenFields } from '@posthorn/domain/message-fields.ts';
import { HOUR_MS } from '@posthorn/domain/stats.ts';
import type {
  Filters,
  FoundWebhook,
  TargetList,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { Counter, type Registry } from 'prom-client';
import type { NextSlice } from '../limits/slices.ts';

/** The webhooks of a message, and the parts of it that its app does not want stored. */
export interface ResolvedTargets extends TargetList {
  notStored?: NotStored;
  /** Only without targets. */
  noTargetReason?: NoTargetReason;
}

/** The parts of a message that filters are about. */
interface Filtered {
  payload: string;
  eventType: string | null;
  given?: GivenFields;
}

/** Returns the webhooks that a message goes to. Rejects when a turn does, and when the store cannot be read. */
export type SelectTargets = (message: Filtered, nextSlice?: NextSlice) => Promise<ResolvedTargets>;

export type FindWebhook = (id: string) => Promise<FoundWebhook | null>;

interface SelectDeps {
  /** The webhooks that select the event type of the message; at least one. */
  list: ResolvedTargets;
  filters: Filters;
  /** Finds one of them. */
  find: FindWebhook;
  /** Reports those whose filters would have cost too much: they get the message. */
  onUndecided: (webhookIds: readonly string[]) => void;
}

/** A step of a filter takes about 30 ns. */
const MS_PER_STEP = 0.000_03;
/** To parse a payload takes about 10 ns for each character. */
const CHARS_OF_A_STEP = 3;
/** 2 ms. */
const STEPS_OF_A_SLICE = 65_000;
/** 0.1 ms, as an ordinary message costs: less is not charged. */
const STEPS_OF_A_MESSAGE = 3_300;

export function createSelectTargets({
  list,
  filters,
  find,
  onUndecided,
}: SelectDeps): SelectTargets {
  return async (message, nextSlice) => {
    const selecting = select(list, filters, message);
    let next = selecting.next();
    while (next.done !== true) {
      await nextSlice?.(next.value * MS_PER_STEP);
      next = selecting.next();
    }
    const { undecided, ...selected } = next.value;
    if (undecided.length > 0) onUndecided(undecided);
    const [first] = selected.targets;
    if (first === undefined || first === list.targets[0]) return selected;
    return { ...selected, oldest: await find(first) };
  };
}

interface Selected extends ResolvedTargets {
  /** The targets whose filters need more steps than one message may cost. */
  undecided: string[];
}

/**
 * Returns the webhooks whose filter the message passes, in their order, and yields the steps after each slice. `oldest` is
 * that of the list while it is among them, else null. The payload is parsed once, when a condition is about it.
 */
export function* select(
  list: ResolvedTargets,
  filters: Filters,
  message: Filtered,
): Generator<number, Selected, undefined> {
  let steps = 0;
  const { payload, eventType, given } = message;
  const facts = factsOf({ payload, eventType, tags: given?.tags }, () => {
    steps += Math.floor(payload.length / CHARS_OF_A_STEP);
  });
  const targets: string[] = [];
  const undecided: string[] = [];
  for (const id of list.targets) {
    const filter = filters.get(id);
    const verdict = filter && matches(filter, facts);
    if (verdict?.matches !== false) targets.push(id);
    if (verdict?.isUndecided) undecided.push(id);
    steps += verdict?.steps ?? 0;
    if (steps < STEPS_OF_A_SLICE) continue;
    yield steps;
    steps = 0;
  }
  if (steps >= STEPS_OF_A_MESSAGE) yield steps;
  if (targets.length === list.targets.length) return { ...list, undecided };
  const passing = new Set(targets);
  const among = (ids: ReadonlySet<string>) => new Set([...ids].filter((id) => passing.has(id)));
  const disabledTargets = among(list.disabledTargets);
  const orderedTargets = among(list.orderedTargets);
  const oldest = targets[0] === list.targets[0] ? list.oldest : null;
  const reason = targets.length === 0 && { noTargetReason: 'filter' as const };
  return { ...list, targets, disabledTargets, orderedTargets, oldest, ...reason, undecided };
}

interface UndecidedDeps {
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
  monotonicMs: () => number;
}

/** Webhooks that are named in an hour at most. */
const MOST_NAMED = 1_000;

/** Counts undecided filters. A webhook is named in the log once an hour. */
export function createUndecidedReport({
  registry,
  logger,
  monotonicMs,
}: UndecidedDeps): SelectDeps['onUndecided'] {
  const counter = new Counter({
    name: 'posthorn_filters_undecided_total',
    help: 'Filters of webhooks that needed more than 10,000 steps for a message, which then counts as matching.',
    registers: [registry],
  });
  const named = new Set<string>();
  let sinceMs = -Infinity;
  return (webhookIds) => {
    counter.inc(webhookIds.length);
    if (monotonicMs() - sinceMs >= HOUR_MS) {
      named.clear();
      sinceMs = monotonicMs();
    }
    for (const webhookId of webhookIds) {
      if (named.has(webhookId) || named.size >= MOST_NAMED) continue;
      named.add(webhookId);
      logger.warn({ webhookId }, 'the filter of a webhook costs too much and counts as matching');
    }
  };
}
