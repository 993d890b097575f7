import { type GroupRole, MAX_GROUP_CHARS, ROLES } from '@posthorn/domain/people.ts';
import type { SessionKey } from '@posthorn/platform/mongo/companies/people.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import {
  assertPeopleExist,
  changeMapping,
  changePerson,
  endSessionsOf,
  type KnownPerson,
  listPeople,
  readPerson,
  removePerson,
} from '../people/people.ts';
import {
  idField,
  idText,
  isoTime,
  limit,
  optionalFields,
  skip,
  text,
  timeField,
} from './fields.ts';

export const roleField = z.enum(ROLES, `must be one of ${ROLES.join(', ')}`).meta({
  id: 'Role',
  description:
    '`viewer` reads, `support` also sends, resends, cancels, replays and holds, `admin` may do all',
  example: 'support',
});

const personSchema = z
  .object({
    id: idField('usr'),
    name: z.string().nullable().meta({ description: 'As the issuer says', example: 'Ada' }),
    email: z.string().nullable().meta({
      description: 'As the issuer says; it decides nothing',
      example: 'ada@example.com',
    }),
    role: roleField,
    source: z.enum(['group', 'invitation']).meta({
      description: 'What grants the role, which is the higher one of both',
      example: 'group',
    }),
    disabled: z.boolean().meta({ description: 'Whether sign-ins are refused', example: false }),
    apiKeys: z.int().meta({ description: 'How many API keys the person made', example: 2 }),
    createdAt: timeField,
    lastSignedInAt: timeField,
  })
  .meta({ id: 'Person' });

const sessionSchema = z
  .object({
    id: idField('key'),
    clientAddress: z.string().nullable().meta({ example: '192.0.2.7' }),
    userAgent: z.string().nullable().meta({ description: 'The browser', example: 'Mozilla/5.0' }),
    startedAt: timeField,
    lastUsedAt: timeField
      .nullable()
      .meta({ description: 'To the minute; null before the first use' }),
    expiresAt: timeField,
  })
  .meta({ id: 'PersonSession' });

const personWithSessions = z
  .object({ ...personSchema.shape, sessions: z.array(sessionSchema) })
  .meta({ id: 'PersonWithSessions' });

function describePerson({ document, role, source, apiKeys }: KnownPerson) {
  const { _id: id, name, email, disabledAt, createdAt, lastSignedInAt } = document;
  return {
    id,
    name,
    email,
    role,
    source,
    disabled: disabledAt !== undefined,
    apiKeys,
    createdAt: isoTime(createdAt),
    lastSignedInAt: isoTime(lastSignedInAt),
  };
}

function describeSession(session: SessionKey): z.infer<typeof sessionSchema> {
  const { _id: id, signIn, createdAt, lastUsedAt, expiresAt } = session;
  return {
    id,
    clientAddress: signIn.clientAddress,
    userAgent: signIn.userAgent,
    startedAt: isoTime(createdAt),
    lastUsedAt: lastUsedAt ? isoTime(lastUsedAt) : null,
    expiresAt: isoTime(expiresAt ?? createdAt),
  };
}

const common = {
  versionedOnly: true,
  scope: 'admin',
  isForCompanyOnly: true,
  tag: 'People',
} as const;

const onePerson = { ...common, path: '/people/:personId', errors: ['not_found'] } as const;

/** See docs/contract.md C26. */
export function peopleRoutes(gateway: Gateway): Route[] {
  return [
    listRoute(gateway),
    readRoute(gateway),
    changeRoute(gateway),
    removeRoute(gateway),
    endSessionsRoute(gateway),
    readSettingsRoute(gateway),
    writeSettingsRoute(gateway),
  ];
}

function listRoute(gateway: Gateway): Route {
  return route({
    ...common,
    operationId: 'listPeople',
    method: 'get',
    path: '/people',
    summary: 'List the people of the company, oldest first',
    description:
      'Those who have signed in. The role is that of their last sign-in, or of the invitation.',
    query: z.object({ limit: limit(100, 100), skip }),
    response: { status: 200, message: 'People found', data: z.array(personSchema) },
    errors: ['route_not_found'],
    async handle({ caller: { companyId }, query }) {
      return { data: (await listPeople(gateway, companyId, query)).map(describePerson) };
    },
  });
}

function readRoute(gateway: Gateway): Route {
  return route({
    ...onePerson,
    operationId: 'getPerson',
    method: 'get',
    summary: 'Get a person, and their sessions',
    response: { status: 200, message: 'Person found', data: personWithSessions },
    async handle({ caller: { companyId }, params: { personId = '' } }) {
      const { sessions, ...person } = await readPerson(gateway, companyId, personId);
      return { data: { ...describePerson(person), sessions: sessions.map(describeSession) } };
    },
  });
}

const changeBody = z
  .object({
    role: roleField.exactOptional(),
    disabled: z.boolean('must be true or false').exactOptional().meta({ example: true }),
  })
  .meta({ id: 'UpdatePerson' });

function changeRoute(gateway: Gateway): Route {
  return route({
    ...onePerson,
    operationId: 'updatePerson',
    method: 'put',
    audit: { action: 'person.updated', target: 'person' },
    summary: 'Change the role of an invited person, or disable a person',
    description:
      'Both end all sessions of the person, within two seconds at every gateway. Whoever is disabled signs in no more; the API keys that they made stay.',
    body: changeBody,
    isBodyOptional: true,
    response: { status: 200, message: 'Person updated', data: personSchema },
    errors: ['not_found', 'role_by_group'],
    async handle({ caller: { companyId }, params: { personId: id = '' }, body: { value } }) {
      const { before, after } = await changePerson(gateway, { companyId, id }, value);
      return {
        data: describePerson(after),
        changed: { before: auditedFields(before), after: auditedFields(after) },
      };
    },
  });
}

const auditedFields = ({ document: { name, disabledAt }, role }: KnownPerson) => ({
  name,
  role,
  disabled: disabledAt !== undefined,
});

function removeRoute(gateway: Gateway): Route {
  return route({
    ...onePerson,
    operationId: 'deletePerson',
    method: 'delete',
    audit: { action: 'person.removed', target: 'person' },
    summary: 'Remove a person',
    description:
      'Ends all sessions, and forgets name and e-mail address. The audit log keeps the name, and says which API keys the person made; `GET /api-keys?createdBy=…` lists them. A group lets the person in again, as a new one: disable people who must stay out.',
    response: { status: 200, message: 'Person removed' },
    async handle({ caller: { companyId }, params: { personId = '' } }) {
      const { person, keyIds } = await removePerson(gateway, companyId, personId);
      return { changed: { before: { ...auditedFields(person), apiKeys: keyIds }, after: {} } };
    },
  });
}

function endSessionsRoute(gateway: Gateway): Route {
  return route({
    ...onePerson,
    operationId: 'endPersonSessions',
    method: 'post',
    path: '/people/:personId/end-sessions',
    audit: { action: 'person.sessions_ended', target: 'person' },
    summary: 'End the sessions of a person',
    description: 'At once at this gateway, and within two seconds at others.',
    body: z
      .object(
        optionalFields({
          sessionId: idText('key').meta({ description: 'Only this one; all when left out' }),
        }),
      )
      .meta({ id: 'EndPersonSessions' }),
    isBodyOptional: true,
    response: {
      status: 200,
      message: 'Sessions ended',
      data: z
        .object({ ended: z.int().meta({ description: 'How many there were', example: 1 }) })
        .meta({ id: 'EndedSessions' }),
    },
    async handle({ caller: { companyId }, params: { personId: id = '' }, body: { value } }) {
      const ended = await endSessionsOf(gateway, { companyId, id }, value.sessionId);
      return { data: { ended }, changed: { before: { sessions: ended }, after: {} } };
    },
  });
}

const MAX_GROUPS = 100;

const settingsFields = {
  groups: z
    .array(
      z.object({
        group: text(1, MAX_GROUP_CHARS).meta({
          description: 'As the claim OIDC_GROUPS_CLAIM has it, compared exactly',
          example: 'helpdesk',
        }),
        role: roleField,
      }),
      'must be a list of groups with their roles',
    )
    .max(MAX_GROUPS, `must have at most ${MAX_GROUPS} groups`)
    .meta({ description: 'Everyone in one of these groups has its role, the highest of several' }),
};
const settingsSchema = z.object(settingsFields).meta({ id: 'PeopleSettings' });

const settings = { ...common, path: '/people-settings', errors: ['route_not_found'] } as const;

function readSettingsRoute(gateway: Gateway): Route {
  return route({
    ...settings,
    operationId: 'getPeopleSettings',
    method: 'get',
    summary: 'Get the roles of groups',
    response: { status: 200, message: 'People settings found', data: settingsSchema },
    async handle({ caller: { companyId } }) {
      await assertPeopleExist(gateway, companyId);
      return { data: { groups: await gateway.people.readMapping(companyId) } };
    },
  });
}

function writeSettingsRoute(gateway: Gateway): Route {
  return route({
    ...settings,
    operationId: 'updatePeopleSettings',
    method: 'put',
    audit: { action: 'people_settings.updated', target: 'company' },
    summary: 'Change the roles of groups',
    description: 'Ends the sessions whose role changes by it, within two seconds at every gateway.',
    body: z
      .object({ groups: settingsFields.groups.exactOptional() })
      .meta({ id: 'UpdatePeopleSettings' }),
    isBodyOptional: true,
    response: { status: 200, message: 'People settings updated', data: settingsSchema },
    async handle({ caller: { companyId }, body: { value } }) {
      await assertPeopleExist(gateway, companyId);
      const { groups } = value;
      const before =
        groups === undefined
          ? await gateway.people.readMapping(companyId)
          : await changeMapping(gateway, companyId, groups);
      const after: GroupRole[] = groups ?? before;
      return {
        data: { groups: after },
        changed: { before: { groups: before }, after: { groups: after } },
      };
    },
  });
}
