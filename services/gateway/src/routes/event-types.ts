import type { AuditedFields } from '@posthorn/domain/audit.ts';
import { EVENT_TYPE_FIELDS, eventTypeName } from '@posthorn/domain/event-type-fields.ts';
import {
  auditedObject,
  createShape,
  responseFields,
  responseShape,
  updateShape,
} from '@posthorn/domain/object-fields.ts';
import type { ListedEventType } from '@posthorn/platform/mongo/companies/event-types.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { EventTypeDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import { ApiError, invalidRequest } from '../api-error.ts';
import type { EventTypeKey } from '../catalogue/event-types.ts';
import type { Gateway } from '../gateway.ts';
import { type ApiResponse, route, type Route, type Upsert, upsert } from '../http/route.ts';
import { describeParts } from '../http/send-json.ts';
import { inSlices } from '../limits/slices.ts';
import { isoTime, limit, skip, text, timeField, upsertQuery, wholeNumberText } from './fields.ts';

const { schema, example, ...listedShape } = responseShape(EVENT_TYPE_FIELDS);

const schemaVersion = z.int().meta({
  description: 'Set by Posthorn: 1, and one more with each other `schema`',
});

const listedSchema = z
  .object({ ...listedShape, schemaVersion, createdAt: timeField, updatedAt: timeField })
  .meta({ id: 'ListedEventType' });

const eventTypeSchema = z
  .object({ ...listedSchema.shape, schema, example })
  .meta({ id: 'EventType' });

function describeListed(document: ListedEventType): z.infer<typeof listedSchema> {
  const {
    schema: _schema,
    example: _example,
    ...listed
  } = describe({
    ...document,
    schema: null,
    example: null,
  });
  return listed;
}

function describe(document: EventTypeDocument): z.infer<typeof eventTypeSchema> {
  const { schemaVersion: version, createdAt, updatedAt } = document;
  return {
    ...responseFields(EVENT_TYPE_FIELDS, document),
    schemaVersion: version,
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
  };
}

const createBody = z.object(createShape(EVENT_TYPE_FIELDS)).meta({ id: 'CreateEventType' });
const updateBody = z.object(updateShape(EVENT_TYPE_FIELDS)).meta({ id: 'UpdateEventType' });
/** The address has the name. */
const upsertBody = createBody.extend({ name: createBody.shape.name.optional() });

/** Two parts of 12 event types of up to 17 kB each, as objects and as text. */
const LONG_LIST_BYTES = 1_048_576;

const ofGroup = {
  group: text(1, 100).optional().meta({ description: 'Only event types of this group' }),
};
const page = { limit: limit(1_000, 1_000), skip };

const listQuery = z.object({
  ...ofGroup,
  archived: z
    .enum(['true', 'false'], 'must be true or false')
    .optional()
    .meta({ description: 'Only archived ones, or only others' }),
  ...page,
});

const versionQuery = z.object({
  version: wholeNumberText(1, 999_999_999)
    .optional()
    .meta({ description: 'Shows an earlier `schema`. The newest 20 are kept' }),
});

const tag = 'Event types';
const versionedOnly = true;
const path = '/projects/:projectId/event-types';
const onePath = `${path}/:eventTypeName` as const;

/** See docs/contract.md C28. */
export function eventTypeRoutes(gateway: Gateway): Route[] {
  return [
    createRoute(gateway),
    listRoute(gateway),
    getRoute(gateway),
    updateRoute(gateway),
    deleteRoute(gateway),
    listOfAppRoute(gateway),
    getOfAppRoute(gateway),
  ];
}

const keyOf = ({ projectId = '', eventTypeName: name = '' }): EventTypeKey => ({ projectId, name });

function createRoute({ eventTypes }: Gateway): Route {
  return route({
    operationId: 'createEventType',
    method: 'post',
    path,
    versionedOnly,
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'event_type.created', target: 'eventType' },
    tag,
    summary: 'Create an event type in the catalogue of a project',
    body: createBody,
    response: { status: 201, message: 'Event type created', data: eventTypeSchema },
    errors: ['not_found', 'event_type_exists', 'quota_exceeded'],
    creation: {},
    async handle({ caller: { companyId }, params, body: { value }, newId }) {
      const { projectId } = keyOf(params);
      const created = { ...value, projectId, creationId: newId('evt') };
      return { data: describe(await eventTypes.create(companyId, created)) };
    },
  });
}

function listRoute({ eventTypes }: Gateway): Route {
  return route({
    operationId: 'listEventTypes',
    method: 'get',
    path,
    versionedOnly,
    scope: 'read',
    tag,
    summary: 'List the event types of a project by name',
    description: 'Without `schema` and `example`.',
    query: listQuery,
    response: { status: 200, message: 'Event types found', data: z.array(listedSchema) },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params, query, reserve, nextSlice }) {
      const { archived, ...others } = query;
      const wanted = {
        ...others,
        ...(archived !== undefined && { archived: archived === 'true' }),
        projectId: keyOf(params).projectId,
      };
      const parts = inSlices(await eventTypes.list(companyId, wanted), nextSlice);
      const shown = { describe: describeListed, bytes: LONG_LIST_BYTES, reserve };
      return { pages: describeParts(parts, shown) };
    },
  });
}

function getRoute({ eventTypes }: Gateway): Route {
  return route({
    operationId: 'getEventType',
    method: 'get',
    path: onePath,
    versionedOnly,
    scope: 'read',
    tag,
    summary: 'Get an event type',
    query: versionQuery,
    response: { status: 200, message: 'Event type found', data: eventTypeSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params, query: { version } }) {
      return { data: describe(await eventTypes.get(companyId, keyOf(params), version)) };
    },
  });
}

function updateRoute(gateway: Gateway): Route {
  return route({
    operationId: 'updateEventType',
    method: 'put',
    path: onePath,
    versionedOnly,
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'event_type.updated', target: 'eventType' },
    tag,
    summary: 'Update an event type',
    description:
      'Fields that are left out keep their values, and null takes one away. Another `schema` is another version.',
    query: upsertByNameQuery,
    body: updateBody,
    isBodyOptional: true,
    response: { status: 200, message: 'Event type updated', data: eventTypeSchema },
    errors: ['not_found'],
    upsert: upsertEventType(gateway),
    async handle({ caller: { companyId }, params, body: { value } }) {
      return describeUpdate(await gateway.eventTypes.update(companyId, keyOf(params), value));
    },
  });
}

const upsertByNameQuery = upsertQuery.extend({
  upsert: upsertQuery.shape.upsert.meta({
    description:
      'With `true`, the event type is created when the project has none of this name, with the fields of a creation',
  }),
});

function upsertEventType({ eventTypes }: Gateway): Upsert {
  return upsert({
    isByName: true,
    body: upsertBody,
    action: 'event_type.created',
    response: { status: 201, message: 'Event type created', data: eventTypeSchema },
    errors: ['event_type_exists', 'quota_exceeded'],
    isForCompanyOnly: true,
    async handle({ caller: { companyId }, params, body, newId }, name) {
      assertNamed(name, body.value.name);
      const key = keyOf(params);
      const changes = body.as(updateBody);
      if (await eventTypes.find(companyId, key)) {
        const updated = await eventTypes.update(companyId, key, changes);
        return { ...describeUpdate(updated), isCreated: false };
      }
      const { projectId } = key;
      const given = { ...body.value, name, projectId, creationId: newId('evt') };
      try {
        const created = await eventTypes.create(companyId, given);
        return { data: describe(created), isCreated: true };
      } catch (error) {
        // Of several requests at once one creates it, and the others update it.
        if (!(error instanceof ApiError) || error.code !== 'event_type_exists') throw error;
        const updated = await eventTypes.update(companyId, key, changes);
        return { ...describeUpdate(updated), isCreated: false };
      }
    },
  });
}

/** Throws ApiError 400 for a name that no event type can have, and for a body that has another one. */
function assertNamed(name: string, given: string | undefined): void {
  const [issue] = eventTypeName.safeParse(name).error?.issues ?? [];
  if (issue) throw invalidRequest([{ path: 'name', message: issue.message }]);
  if (given !== undefined && given !== name) {
    throw invalidRequest([{ path: 'name', message: 'is another one than that of the address' }]);
  }
}

function describeUpdate({ before, after }: Changed<EventTypeDocument>): ApiResponse {
  const changed = { before: audited(before), after: audited(after) };
  return { data: describe(after), changed };
}

function deleteRoute({ eventTypes }: Gateway): Route {
  return route({
    operationId: 'deleteEventType',
    method: 'delete',
    path: onePath,
    versionedOnly,
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'event_type.deleted', target: 'eventType' },
    tag,
    summary: 'Delete an event type',
    description:
      'Its earlier schemas go too. Messages and the event types of webhooks stay as they are.',
    response: { status: 200, message: 'Event type deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params }) {
      const removed = await eventTypes.remove(companyId, keyOf(params));
      return { changed: { before: audited(removed), after: {} } };
    },
  });
}

const audited = (document: EventTypeDocument): AuditedFields => ({
  ...auditedObject(EVENT_TYPE_FIELDS, document),
  schemaVersion: document.schemaVersion,
});

function listOfAppRoute({ eventTypes }: Gateway): Route {
  return route({
    operationId: 'listAppEventTypes',
    method: 'get',
    path: '/apps/:appId/event-types',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'List the event types that an app may receive, by name',
    description: 'Those of its project that are not archived, without `schema` and `example`.',
    query: z.object({ ...ofGroup, ...page }),
    response: { status: 200, message: 'Event types found', data: z.array(listedSchema) },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId = '' }, query, reserve, nextSlice }) {
      const parts = inSlices(await eventTypes.listOfApp(companyId, appId, query), nextSlice);
      const shown = { describe: describeListed, bytes: LONG_LIST_BYTES, reserve };
      return { pages: describeParts(parts, shown) };
    },
  });
}

function getOfAppRoute({ eventTypes }: Gateway): Route {
  return route({
    operationId: 'getAppEventType',
    method: 'get',
    path: '/apps/:appId/event-types/:eventTypeName',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get an event type that an app may receive',
    response: { status: 200, message: 'Event type found', data: eventTypeSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId = '', eventTypeName: name = '' } }) {
      return { data: describe(await eventTypes.getOfApp(companyId, appId, name)) };
    },
  });
}
