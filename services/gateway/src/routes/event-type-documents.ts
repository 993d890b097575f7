import type { JsonObject } from '@posthorn/domain/filter.ts';
import { writeOpenApi, writeWebhook } from '@posthorn/domain/catalogue/write-openapi.ts';
import type { EventTypeDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import type { ImportedEventTypes } from '../catalogue/import-event-types.ts';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import { describeParts } from '../http/send-json.ts';
import { inSlices } from '../limits/slices.ts';
import { optionalFields } from './fields.ts';

const MAX_BYTES = 1_048_576;

const document = z.record(z.string(), z.unknown(), 'must be an object').meta({
  description:
    'An OpenAPI document, 3.1 with `webhooks` or 3.0 with `x-webhooks`. References lead to places of the same document',
  example: {
    openapi: '3.1.0',
    webhooks: {
      'order.paid': {
        post: {
          tags: ['Orders'],
          description: 'An order was paid.',
          requestBody: { content: { 'application/json': { example: { order: 17 } } } },
        },
      },
    },
  },
});

const flag = z.boolean('must be true or false');

const importBody = z
  .object({
    document,
    ...optionalFields({
      dryRun: flag.meta({ description: 'With `true`, nothing is changed' }),
      archiveMissing: flag.meta({
        description: 'With `true`, event types that the document does not have are archived',
      }),
    }),
  })
  .meta({ id: 'ImportEventTypes' });

const CHANGES = ['created', 'updated', 'archived'] as const;
const count = z.int().min(0);

const importedSchema = z
  .object({
    created: count,
    updated: count,
    archived: count,
    unchanged: count,
    changes: z.array(z.object({ name: z.string(), change: z.enum(CHANGES) })).meta({
      description: 'By name, without what is unchanged',
    }),
  })
  .meta({ id: 'ImportedEventTypes' });

const tag = 'Event types';
const versionedOnly = true;

/** See docs/contract.md C28. */
export function eventTypeDocumentRoutes(gateway: Gateway): Route[] {
  return [importRoute(gateway), exportRoute(gateway)];
}

function importRoute({ importEventTypes }: Gateway): Route {
  return route({
    operationId: 'importEventTypes',
    method: 'post',
    path: '/projects/:projectId/import-event-types',
    versionedOnly,
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: {
      action: 'event_type.imported',
      target: 'project',
      changesNothing: ({ dryRun }) => dryRun === true,
    },
    tag,
    summary: 'Import event types from an OpenAPI document',
    description:
      'Each webhook of the document becomes an event type, or changes the one of its name. Everything is checked before anything is changed; a repeat completes what was interrupted. The body has at most 1 MiB (1,048,576 bytes).',
    body: importBody,
    maxBodyBytes: MAX_BYTES,
    response: { status: 200, message: 'Event types imported', data: importedSchema },
    errors: ['not_found', 'quota_exceeded'],
    async handle({ caller: { companyId }, params: { projectId = '' }, body, ...request }) {
      const { nextSlice, newId } = request;
      const { dryRun = false, archiveMissing = false } = body.value;
      const given = body.value.document as JsonObject;
      const options = { document: given, dryRun, archiveMissing, creationId: newId('evt') };
      const imported = await importEventTypes({ companyId, projectId, ...options, nextSlice });
      const changed = { before: {}, after: { count: imported.changes.length } };
      return { data: describe(imported), changed };
    },
  });
}

function describe({ unchanged, changes }: ImportedEventTypes): z.infer<typeof importedSchema> {
  const countOf = (wanted: (typeof CHANGES)[number]): number =>
    changes.filter(({ change }) => change === wanted).length;
  return {
    created: countOf('created'),
    updated: countOf('updated'),
    archived: countOf('archived'),
    unchanged,
    changes: [...changes],
  };
}

/** Two parts of event types with the largest schemas and examples, as objects and as text. */
const LONG_EXPORT_BYTES = 4_194_304;

function exportRoute({ eventTypes, projects }: Gateway): Route {
  return route({
    operationId: 'exportEventTypes',
    method: 'get',
    path: '/projects/:projectId/export-event-types',
    versionedOnly,
    scope: 'read',
    tag,
    summary: 'Export the event types of a project as an OpenAPI document',
    description:
      'An OpenAPI 3.1 document with a webhook for each event type that is not archived. To import it changes nothing.',
    response: {
      status: 200,
      message: 'Event types exported',
      data: z.record(z.string(), z.unknown()).meta({ id: 'OpenApiDocument' }),
    },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { projectId = '' }, reserve, nextSlice }) {
      const { name } = await projects.get(companyId, projectId);
      const parts = inSlices(
        eventTypes.readAll(companyId, { projectId, archived: false }),
        nextSlice,
      );
      const entries = describeParts(parts, {
        describe: (each: EventTypeDocument) => [each.name, writeWebhook(each)] as const,
        bytes: LONG_EXPORT_BYTES,
        reserve,
      });
      return { pages: entries, frame: (webhooks) => writeOpenApi(name, webhooks as JsonObject) };
    },
  });
}
