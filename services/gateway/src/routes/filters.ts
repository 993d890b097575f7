import { optionalFields, eventType, messageTags } from '@posthorn/domain/field-types.ts';
import { factsOf, failureOf, matches } from '@posthorn/domain/filter.ts';
import { filterOf, filterText } from '@posthorn/domain/parse-filter.ts';
import { z } from 'zod';
import { route, type Route } from '../http/route.ts';
import { messageFields } from './messages.ts';

const testBody = z
  .object({
    filter: filterText,
    payload: messageFields.payload.meta({ description: 'The payload of the message' }),
    ...optionalFields({ eventType, tags: messageTags }),
  })
  // The schema of a filter takes any value, so that all problems of one are shown.
  .meta({ id: 'TestFilter', required: ['filter', 'payload'] });

const testedSchema = z
  .object({
    matches: z.boolean().meta({ description: 'Whether the message would pass the filter' }),
    failedAt: z.string().nullable().meta({
      description: 'The first condition that the message does not meet; null when it passes',
      example: 'payload.amount.$gte',
    }),
    undecided: z.boolean().meta({
      description: 'The filter costs too much for this message, which therefore passes',
    }),
  })
  .meta({ id: 'TestedFilter' });

/** See docs/contract.md C27.6. */
export function testFilterRoute(): Route {
  return route({
    operationId: 'testFilter',
    method: 'post',
    path: '/test-filter',
    versionedOnly: true,
    scope: 'read',
    portal: 'manage',
    tag: 'Webhooks',
    summary: 'Test a filter',
    description:
      'Returns whether a message passes the filter of a webhook, and the first condition that fails. Nothing is stored or sent.',
    body: testBody,
    response: { status: 200, message: 'Filter tested', data: testedSchema },
    async handle({ body: { value, textOf }, nextSlice }) {
      await nextSlice();
      const { eventType = null, tags } = value;
      const filter = filterOf(value.filter);
      const facts = factsOf({ payload: textOf('payload') ?? '{}', eventType, tags });
      const { matches: passes, isUndecided } = matches(filter, facts);
      const failedAt = failureOf(filter, facts);
      return { data: { matches: passes, failedAt, undecided: isUndecided } };
    },
  });
}
