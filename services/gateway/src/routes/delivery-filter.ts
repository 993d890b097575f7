import {
  type DeliveryFilter,
  FILTER_REASONS,
  isNarrowed,
  statusesOf,
  statusOfReason,
} from '@posthorn/domain/delivery/delivery-filter.ts';
import { type DeliveryStatus, STATUSES } from '@posthorn/domain/delivery/delivery.ts';
import { eventType } from '@posthorn/domain/field-types.ts';
import { WAITING } from '@posthorn/domain/waiting.ts';
import { z } from 'zod';
import { invalidRequest } from '../api-error.ts';
import type { Caller } from '../keys/rights.ts';
import { idText, isoTime, optionalFields, text, timeText } from './fields.ts';

const oneOf = (names: readonly string[]): string => `(${names.join('|')})`;

/** The fields that select deliveries: of the list, of a plan, and of what is done with all that they select. */
const FIELDS = {
  status: text(1, 50)
    .regex(
      new RegExp(`^${oneOf(STATUSES)}(,${oneOf(STATUSES)})*$`),
      `must be ${STATUSES.join(', ')}, or several with commas between them`,
    )
    .meta({
      description:
        'Only deliveries with this status, or with one of several with commas between them',
    }),
  waiting: z.enum(WAITING, `must be one of ${WAITING.join(', ')}`).meta({
    description:
      'Only pending deliveries that wait without an attempt to come: on `hold`, or for the `time` of their message',
  }),
  reason: z.enum(FILTER_REASONS).meta({
    description:
      'Only deliveries that were cancelled or exhausted for this reason; `all_attempts`: exhausted without a reason, because all of their attempts were made',
  }),
  webhookId: idText('wh'),
  appId: idText('app').meta({ description: 'Only deliveries of messages to this app' }),
  eventType: eventType.meta({
    description: 'Only deliveries of messages with exactly this event type',
  }),
  since: timeText.meta({
    description: 'Only deliveries of messages that were created at this time or later',
  }),
  until: timeText.meta({
    description: 'Only deliveries of messages that were created at this time or earlier',
  }),
};

type Fields = typeof FIELDS;

/** The fields of a query. */
export const filterQuery = Object.fromEntries(
  Object.entries(FIELDS).map(([name, schema]) => [name, schema.optional()]),
) as { [Name in keyof Fields]: z.ZodOptional<Fields[Name]> };

/** The same fields of a body. */
export const filterBody = optionalFields(FIELDS);

/** A filter as a client writes it. */
export type WrittenFilter = { [Name in keyof Fields]?: z.infer<Fields[Name]> | undefined };

const isStatus = (each: string): each is DeliveryStatus =>
  STATUSES.some((status) => status === each);

/**
 * Returns the filter. A key of one app selects the deliveries of this app's messages, or those to one webhook of it. Throws
 * ApiError 400 for a filter that no delivery can pass.
 */
export function filterOf(
  { status, since, until, ...fields }: WrittenFilter,
  { appId }: Pick<Caller, 'appId'>,
): DeliveryFilter {
  const ofKey = fields.webhookId === undefined ? (appId ?? undefined) : undefined;
  const filter = {
    ...fields,
    statuses: status?.split(',').filter(isStatus),
    appId: fields.appId ?? ofKey,
    sinceMs: since === undefined ? undefined : Date.parse(since),
    untilMs: until === undefined ? undefined : Date.parse(until),
  };
  assertPossible(filter);
  return filter;
}

function assertPossible({ reason, waiting, statuses }: DeliveryFilter): void {
  if (reason && statusesOf({ statuses, reason }).length === 0) {
    const message = `is one of ${statusOfReason(reason)} deliveries`;
    throw invalidRequest([{ path: 'reason', message }]);
  }
  if (waiting && statusesOf({ statuses, reason, waiting }).length === 0) {
    throw invalidRequest([{ path: 'waiting', message: 'is of pending deliveries' }]);
  }
}

/**
 * Returns the filter of what is done with all deliveries that it selects, limited to the statuses of which that can be done.
 * Throws ApiError 400 for a filter without any field besides `status`, which would select all that the company has, and for
 * one that selects other statuses.
 */
export function narrowedFilterOf(
  written: WrittenFilter,
  caller: Pick<Caller, 'appId'>,
  statuses: readonly DeliveryStatus[],
): DeliveryFilter & { statuses: readonly DeliveryStatus[] } {
  const { status: _status, ...narrowing } = written;
  if (!isNarrowed(narrowing)) {
    const names = Object.keys(FIELDS).filter((name) => name !== 'status');
    const message = `needs at least one field besides status: ${names.join(', ')}`;
    throw invalidRequest([{ path: 'filter', message }]);
  }
  const filter = filterOf(written, caller);
  const { sinceMs = -Infinity, untilMs = Infinity } = filter;
  if (untilMs < sinceMs) {
    throw invalidRequest([{ path: 'until', message: 'must not be before since' }]);
  }
  const others = filter.statuses?.filter((each) => !statuses.includes(each)) ?? [];
  const possible = statusesOf({ ...filter, statuses: filter.statuses ?? statuses });
  if (others.length === 0 && possible.length > 0) return { ...filter, statuses: possible };
  const path = others.length > 0 ? 'status' : filter.waiting ? 'waiting' : 'reason';
  throw invalidRequest([{ path, message: `must be of ${statuses.join(' or ')} deliveries` }]);
}

/** A filter as responses show it: what it does not narrow is null. */
export function describeFilter({ statuses, sinceMs, untilMs, ...filter }: DeliveryFilter) {
  const timeOf = (ms: number | undefined): string | null => (ms === undefined ? null : isoTime(ms));
  const { waiting = null, reason = null, webhookId = null, appId = null } = filter;
  return {
    status: statuses?.join(',') ?? null,
    waiting,
    reason,
    webhookId,
    appId,
    eventType: filter.eventType ?? null,
    since: timeOf(sinceMs),
    until: timeOf(untilMs),
  };
}
