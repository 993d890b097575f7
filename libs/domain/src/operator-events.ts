import { z } from 'zod';
import { UnreadableRecordError } from './records/records.ts';
import { type AttemptCounts, attemptsIn, beginningOf, HOUR_MS, successesIn } from './stats.ts';

/** What the operator of the installation is told (docs/operator-events.md). */
const OPERATOR_EVENT_TYPES = [
  'delivery.exhausted',
  'circuit.opened',
  'circuit.closed',
  'dead_letter.written',
  'endpoint.failing',
  'endpoint.to_be_disabled',
  'endpoint.disabled',
  'quota.near',
] as const;

type OperatorEventType = (typeof OPERATOR_EVENT_TYPES)[number];

/** What happened, to which webhook. Both ids are null when they are not known. */
export interface OperatorIncident {
  type: OperatorEventType;
  companyId: string | null;
  webhookId: string | null;
  /** Says more, for a person; never a payload or a secret. */
  detail: string;
}

const VERSION = 1;

const eventSchema = z.object({
  version: z.literal(VERSION),
  id: z.string().startsWith('oev_').max(64),
  type: z.enum(OPERATOR_EVENT_TYPES),
  companyId: z.string().max(64).nullable(),
  webhookId: z.string().max(64).nullable(),
  detail: z.string().max(1_000),
  count: z.number().int().min(1),
  firstAtMs: z.number().int(),
  lastAtMs: z.number().int(),
});

/** Incidents of one type at one webhook, in one process. `detail` is that of the newest one. */
export interface OperatorEvent extends OperatorIncident {
  id: string;
  count: number;
  /** When the first and the newest of them happened, in milliseconds since 1970. */
  firstAtMs: number;
  lastAtMs: number;
}

export function encodeOperatorEvent(event: OperatorEvent): Buffer {
  return Buffer.from(JSON.stringify({ version: VERSION, ...event }));
}

/** Throws UnreadableRecordError. */
export function decodeOperatorEvent(value: Buffer): OperatorEvent {
  const result = eventSchema.safeParse(parse(value.toString()));
  if (!result.success) throw new UnreadableRecordError('not an operator event of version 1');
  const { id, type, companyId, webhookId, detail, count, firstAtMs, lastAtMs } = result.data;
  return { id, type, companyId, webhookId, detail, count, firstAtMs, lastAtMs };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The body of the webhook that the operator gets: `type`, `timestamp` and `data`, as Standard Webhooks advises. */
export function operatorPayloadOf(event: OperatorEvent): Buffer {
  const { type, companyId, webhookId, detail, count } = event;
  const firstAt = new Date(event.firstAtMs).toISOString();
  const lastAt = new Date(event.lastAtMs).toISOString();
  const data = { companyId, webhookId, detail, count, firstAt, lastAt };
  return Buffer.from(JSON.stringify({ type, timestamp: lastAt, data }));
}

/** The attempts to an endpoint that ended in one hour. */
export interface HourOfAttempts {
  /** The beginning of the hour, in milliseconds since 1970. */
  atMs: number;
  succeeded: number;
  failed: number;
}

/** Attempts that we ended ourselves say nothing of the endpoint. */
export function hourOfAttempts(
  atMs: number,
  counts: Pick<AttemptCounts, 'outcomes'>,
): HourOfAttempts {
  const succeeded = successesIn(counts);
  const failed = attemptsIn(counts) - succeeded - (counts.outcomes.aborted ?? 0);
  return { atMs, succeeded, failed };
}

/** What the operator was told of an endpoint that fails. */
export interface ToldFailing {
  /** When its failures began, in milliseconds since 1970. */
  sinceMs: number;
  /** When its webhook is to be disabled, as the warning said; null without a warning. */
  disableAtMs: number | null;
}

/** The operator is told when nothing has succeeded for so long. */
const FAILING_AFTER_MS = 24 * HOUR_MS;
/** The warning comes so long before the webhook is disabled. */
const WARNED_BEFORE_MS = 24 * HOUR_MS;
/**
 * Hours without an attempt that do not interrupt the failures. The longest wait of the default schedule is 10 h: an
 * endpoint that gets one message a day fails at least this often.
 */
const MAX_GAP_MS = 12 * HOUR_MS;
const LOOK_BACK_MS = FAILING_AFTER_MS + MAX_GAP_MS + HOUR_MS;
/** What was reported before still holds up to this time: each round has checked it. */
const MAX_LOOK_BACK_MS = 192 * HOUR_MS;

interface ChangedWebhook {
  told: ToldFailing | null;
  /** When a client changed it last: what failed before may be repaired. */
  changedAtMs: number;
}

/** Returns the beginning of the first hour to be looked at, when those before `toMs` are. */
export function lookFromMs({ told, changedAtMs }: ChangedWebhook, toMs: number): number {
  const firstMs = Math.min(toMs - LOOK_BACK_MS, told?.sinceMs ?? toMs);
  const unchangedMs = beginningOf('hour', changedAtMs) + HOUR_MS;
  return Math.max(firstMs, toMs - MAX_LOOK_BACK_MS, unchangedMs);
}

/**
 * Returns since when every attempt has failed, in milliseconds since 1970; null when one succeeded, or when failures
 * are too rare to say so. `hours` are in order and end before `toMs`. A hole in them ends what was told, but for the
 * hours at its beginning, which may have expired.
 */
export function failingSinceMs(
  hours: readonly HourOfAttempts[],
  { told, toMs }: { told: ToldFailing | null; toMs: number },
): number | null {
  let firstMs: number | null = null;
  let lastMs: number | null = null;
  let isWhole = true;
  for (const { atMs, succeeded, failed } of hours) {
    if (succeeded === 0 && failed === 0) continue;
    const isGap = lastMs !== null && atMs - lastMs > MAX_GAP_MS;
    if (succeeded > 0 || isGap) [firstMs, lastMs, isWhole] = [null, null, false];
    if (succeeded > 0) continue;
    firstMs ??= atMs;
    lastMs = atMs;
  }
  if (firstMs === null || lastMs === null || toMs - lastMs > MAX_GAP_MS) return null;
  const isDayCovered = toMs - firstMs >= FAILING_AFTER_MS - MAX_GAP_MS;
  return told && isWhole && isDayCovered ? Math.min(told.sinceMs, firstMs) : firstMs;
}

export type FailingStep =
  | { kind: 'nothing' }
  | { kind: 'tell' }
  | { kind: 'warn'; disableAtMs: number }
  | { kind: 'disable' };

export interface FailingRules {
  /** AUTO_DISABLE_AFTER; null for never. */
  autoDisableAfterMs: number | null;
  /** Whether other endpoints succeeded. When none does, the fault may be ours. */
  doOthersSucceed: boolean;
  /** The end of the last hour that was looked at, in milliseconds since 1970. */
  toMs: number;
}

const NOTHING: FailingStep = { kind: 'nothing' };

/** Decides what follows from failures since `sinceMs`. No webhook is disabled before the time that a warning has named. */
export function nextFailingStep(
  sinceMs: number,
  told: ToldFailing | null,
  { autoDisableAfterMs, doOthersSucceed, toMs }: FailingRules,
): FailingStep {
  if (toMs - sinceMs < FAILING_AFTER_MS) return NOTHING;
  if (told?.sinceMs !== sinceMs) return { kind: 'tell' };
  if (autoDisableAfterMs === null || !doOthersSucceed) return NOTHING;
  const dueMs = sinceMs + autoDisableAfterMs;
  if (told.disableAtMs !== null) {
    return toMs >= Math.max(told.disableAtMs, dueMs) ? { kind: 'disable' } : NOTHING;
  }
  if (toMs < dueMs - WARNED_BEFORE_MS) return NOTHING;
  return { kind: 'warn', disableAtMs: Math.max(dueMs, toMs + WARNED_BEFORE_MS) };
}
