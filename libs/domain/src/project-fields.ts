import { z } from 'zod';
import { EVENT_TYPE_POLICIES, type EventTypePolicy } from './message.ts';
import { description, type ObjectTable, SHARED_FIELDS } from './object-fields.ts';

const eventTypePolicy = z.enum(
  EVENT_TYPE_POLICIES,
  `must be one of ${EVENT_TYPE_POLICIES.join(', ')}`,
);

/** The fields that a client gives to a project. */
export const PROJECT_FIELDS = {
  ...SHARED_FIELDS,
  description: {
    contract: 'C5.2',
    request: description,
    given: 'always',
    without: null,
    response: z.string().optional().meta({ description: 'Absent when none was given' }),
    show: (stored: string | null) => stored ?? undefined,
    audit: 'shown',
  },
  eventTypePolicy: {
    contract: 'C28.6',
    request: eventTypePolicy.meta({
      description:
        '`known` refuses messages whose event type is not in the catalogue, `validated` also payloads that do not meet its schema. `open` when left out',
    }),
    given: 'always',
    without: undefined,
    whenAbsent: 'open',
    response: z.enum(EVENT_TYPE_POLICIES),
    show: (stored?: EventTypePolicy) => stored ?? 'open',
    audit: 'shown',
  },
} as const satisfies ObjectTable;
