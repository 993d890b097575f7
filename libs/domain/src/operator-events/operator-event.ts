import { z } from 'zod';
import { UnreadableRecordError } from '../records/records.ts';

/** What the operator of the installation is told (docs/operator-events.md). */
export const OPERATOR_EVENT_TYPES = [
  'delivery.exhausted',
  'circuit.opened',
  'circuit.closed',
  'dead_letter.written',
  'endpoint.failing',
  'endpoint.to_be_disabled',
  'endpoint.disabled',
  'quota.near',
] as const;

export type OperatorEventType = (typeof OPERATOR_EVENT_TYPES)[number];

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
