import { z } from 'zod';
import { UnreadableRecordError } from './records/record-value.ts';
import { type AttemptCounts, attemptsIn, beginningOf, HOUR_MS, successesIn } from './stats.ts';

/** The events that the operator of the installation gets (docs/operator-events.md). */
const OPERATOR_EVENT_TYPES = [
  'delivery.exhausted',
  'circuit.opened',
  'circuit.closed',
  'dead_letter.written',
  'endpoint.failing',
  'endpoint.to_be_disabled',
  'endpoint.disabled',
  'endpoint.key_blocked',
  'quota.near',
] as const;

type OperatorEventType = (typeof OPERATOR_EVENT_TYPES)[number];

/** An incident at a webhook. Both ids are null when they are not known. */
export interface OperatorIncident {
  type: OperatorEventType;
  companyId: string | null;
  webhookId: string | null;
  /** Details for people; never a payload or a secret. */
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

/** The incidents of one type at one webhook in one process. `detail` is that of the newest incident. */
export interface OperatorEvent extends OperatorIncident {
  id: string;
  count: number;
  /** The times of the first and the newest incident, in milliseconds since 1970. */
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

/** The forms in which the operator's webhook gets an event: `OPERATOR_WEBHOOK_FORMAT`. */
export const OPERATOR_FORMATS = ['standard', 'slack', 'teams'] as const;

export type OperatorFormat = (typeof OPERATOR_FORMATS)[number];

/** Returns the body of the operator's webhook: `type`, `timestamp` and `data`, as Standard Webhooks advises. */
export function operatorPayloadOf(event: OperatorEvent): Buffer {
  const { type, companyId, webhookId, detail, count } = event;
  const firstAt = new Date(event.firstAtMs).toISOString();
  const lastAt = new Date(event.lastAtMs).toISOString();
  const data = { companyId, webhookId, detail, count, firstAt, lastAt };
  return Buffer.from(JSON.stringify({ type, timestamp: lastAt, data }));
}

/** The titles of events in a chat. */
const TITLES: Record<OperatorEventType, string> = {
  'delivery.exhausted': 'The last attempt of a delivery failed',
  'circuit.opened': 'Most attempts to an endpoint fail',
  'circuit.closed': 'An endpoint accepts attempts again',
  'dead_letter.written': 'A record became a dead letter',
  'endpoint.failing': 'Nothing succeeded at an endpoint for a day',
  'endpoint.to_be_disabled': 'A webhook will be disabled',
  'endpoint.disabled': 'A webhook was disabled',
  'endpoint.key_blocked': 'An exhausted delivery blocks its ordering key',
  'quota.near': 'A company is near a quota',
};

/** The facts of an event with their names, without those that are not known. */
function factsOf(event: OperatorEvent): [name: string, value: string][] {
  const facts: [string, string | null][] = [
    ['Type', event.type],
    ['Company', event.companyId],
    ['Webhook', event.webhookId],
    ['Count', String(event.count)],
    ['First', new Date(event.firstAtMs).toISOString()],
    ['Last', new Date(event.lastAtMs).toISOString()],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
}

/** Returns the page of the webhook in the dashboard below `publicUrl`, and the dashboard without a webhook. */
function dashboardUrlOf({ webhookId }: OperatorEvent, publicUrl: string): string {
  const page = webhookId === null ? '' : `webhooks/${encodeURIComponent(webhookId)}`;
  return `${publicUrl}/dashboard/${page}`;
}

const LINK_TEXT = 'Open in the dashboard';

/**
 * Returns an event as an incoming webhook of Slack takes it. Without a `publicUrl`, PUBLIC_URL, it has no link. Slack
 * reads `<…>` as a link or a mention and asks for `&`, `<` and `>` to be escaped.
 */
export function slackPayloadOf(event: OperatorEvent, publicUrl: string | null): Buffer {
  const lines = [
    TITLES[event.type],
    event.detail,
    ...factsOf(event).map((fact) => fact.join(': ')),
  ];
  const link = publicUrl === null ? [] : [`<${dashboardUrlOf(event, publicUrl)}|${LINK_TEXT}>`];
  const text = [...lines.map(escapeForSlack), ...link].join('\n');
  return Buffer.from(JSON.stringify({ text }));
}

function escapeForSlack(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

/**
 * Returns an event as a Workflows webhook of Teams takes it: a message with one Adaptive Card. Without a `publicUrl`,
 * PUBLIC_URL, it has no link. `detail` is a TextRun, since a TextBlock would read it as Markdown.
 */
export function teamsPayloadOf(event: OperatorEvent, publicUrl: string | null): Buffer {
  const facts = factsOf(event).map(([title, value]) => ({ title, value }));
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [
      { type: 'TextBlock', text: TITLES[event.type], weight: 'Bolder', wrap: true },
      { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: event.detail }] },
      { type: 'FactSet', facts },
    ],
    ...(publicUrl !== null && {
      actions: [
        { type: 'Action.OpenUrl', title: LINK_TEXT, url: dashboardUrlOf(event, publicUrl) },
      ],
    }),
  };
  const contentType = 'application/vnd.microsoft.card.adaptive';
  const attachments = [{ contentType, contentUrl: null, content }];
  return Buffer.from(JSON.stringify({ type: 'message', attachments }));
}

/** The attempts to an endpoint that ended in one hour. */
export interface HourOfAttempts {
  /** The beginning of the hour, in milliseconds since 1970. */
  atMs: number;
  succeeded: number;
  failed: number;
}

/** Attempts that Posthorn ended itself do not count: they show nothing about the endpoint. */
export function hourOfAttempts(
  atMs: number,
  counts: Pick<AttemptCounts, 'outcomes'>,
): HourOfAttempts {
  const succeeded = successesIn(counts);
  const failed = attemptsIn(counts) - succeeded - (counts.outcomes.aborted ?? 0);
  return { atMs, succeeded, failed };
}

/** The notification of the operator about a failing endpoint. */
export interface ToldFailing {
  /** The beginning of the failures, in milliseconds since 1970. */
  sinceMs: number;
  /** The time at which the webhook is to be disabled, according to the warning; null without a warning. */
  disableAtMs: number | null;
}

/** The operator is notified after this time without a success. */
const FAILING_AFTER_MS = 24 * HOUR_MS;
/** The time between the warning and the disabling of the webhook. */
const WARNED_BEFORE_MS = 24 * HOUR_MS;
/**
 * The longest time without an attempt that does not interrupt the failures. The longest delay of the default schedule
 * is 10 h: an endpoint with one message a day fails at least this often.
 */
const MAX_GAP_MS = 12 * HOUR_MS;
const LOOK_BACK_MS = FAILING_AFTER_MS + MAX_GAP_MS + HOUR_MS;
/** Earlier notifications are valid up to this time: each tick has checked them. */
const MAX_LOOK_BACK_MS = 192 * HOUR_MS;

interface ChangedWebhook {
  told: ToldFailing | null;
  /** The last change by a client: earlier failures may be repaired. */
  changedAtMs: number;
}

/** Returns the beginning of the first hour to be examined; the last one ends at `toMs`. */
export function lookFromMs({ told, changedAtMs }: ChangedWebhook, toMs: number): number {
  const firstMs = Math.min(toMs - LOOK_BACK_MS, told?.sinceMs ?? toMs);
  const unchangedMs = beginningOf('hour', changedAtMs) + HOUR_MS;
  return Math.max(firstMs, toMs - MAX_LOOK_BACK_MS, unchangedMs);
}

/**
 * Returns the time since which every attempt has failed, in milliseconds since 1970; null after a success, or when
 * failures are too rare. `hours` are in order and end before `toMs`. A gap between them ends the failures of which
 * the operator was notified, except at the beginning, where hours may have expired.
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
  /** Whether attempts to other endpoints succeeded. When none did, the fault may be Posthorn's. */
  doOthersSucceed: boolean;
  /** The end of the last examined hour, in milliseconds since 1970. */
  toMs: number;
}

const NOTHING: FailingStep = { kind: 'nothing' };

/** Decides what follows from failures since `sinceMs`. No webhook is disabled before the time in its warning. */
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
