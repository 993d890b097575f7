import { newLinkToken } from '@posthorn/platform/mongo/companies/links.ts';
import type { OpenInvitation } from '@posthorn/platform/mongo/companies/invitations.ts';
import { z } from 'zod';
import { foundOr404 } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import { assertPeopleExist } from '../people/people.ts';
import {
  idField,
  isoTime,
  limit,
  name,
  optionalFields,
  skip,
  text,
  timeField,
  wholeNumber,
} from './fields.ts';
import { createdLinkFields, creationOfLink } from './created-link.ts';
import { roleField } from './people.ts';

const DAY_SECONDS = 86_400;
const WEEK_SECONDS = 604_800;

const email = text(3, 320).meta({
  description: 'For those who see the list; nothing is sent there',
  example: 'sam@example.com',
});
const nameOfInvited = name.meta({ description: 'For those who see the list', example: 'Sam' });

const createBody = z
  .object({
    role: roleField,
    ...optionalFields({
      name: nameOfInvited,
      email,
      expiresInSeconds: wholeNumber(300, WEEK_SECONDS).meta({
        description: 'How long the invitation may be used; a day when left out',
        example: DAY_SECONDS,
      }),
    }),
  })
  .meta({ id: 'CreateInvitation' });

const createdSchema = z
  .object(
    createdLinkFields('inv', {
      opens: 'Opens once. Whoever signs in with it becomes a person of the company',
      example: 'https://hooks.example.com/dashboard/invitation#Y2hv',
    }),
  )
  .meta({ id: 'CreatedInvitation' });

const openSchema = z
  .object({
    id: idField('inv'),
    role: roleField,
    name: z.string().nullable().meta({ example: 'Sam' }),
    email: z.string().nullable().meta({ example: 'sam@example.com' }),
    by: z.string().meta({ description: 'Id of the API key or of the person that invited' }),
    createdAt: timeField,
    expiresAt: timeField,
  })
  .meta({ id: 'Invitation' });

function describeInvitation({ invitation, createdAtMs, expiresAtMs }: OpenInvitation) {
  const createdAt = isoTime(createdAtMs);
  return { ...invitation, createdAt, expiresAt: isoTime(expiresAtMs) };
}

const common = {
  path: '/invitations',
  versionedOnly: true,
  scope: 'admin',
  isForCompanyOnly: true,
  tag: 'People',
} as const;

/** See docs/contract.md C26.4. */
export function invitationRoutes(gateway: Gateway): Route[] {
  return [createRoute(gateway), listRoute(gateway), revokeRoute(gateway)];
}

function createRoute(gateway: Gateway): Route {
  const { links, invitations, quotas, publicUrl, nowMs } = gateway;
  return route({
    ...common,
    operationId: 'createInvitation',
    method: 'post',
    audit: { action: 'person.invited', target: 'invitation' },
    summary: 'Invite a person',
    description:
      'Posthorn sends no e-mail: hand the URL over. Whoever signs in with it first has the role in the company, whatever groups they have.',
    body: createBody,
    response: { status: 201, message: 'Invitation created', data: createdSchema },
    errors: ['route_not_found', 'quota_exceeded'],
    creation: creationOfLink('inv', (companyId, id) => invitations.expiryOf(companyId, id)),
    async handle({ caller, body: { value }, newId, baseUrl }) {
      const { companyId, keyId, person } = caller;
      await assertPeopleExist(gateway, companyId);
      const { role, name: invited = null, email: address = null } = value;
      const { expiresInSeconds = DAY_SECONDS } = value;
      const id = newId('inv');
      const createdAtMs = nowMs();
      const expiresAtMs = createdAtMs + expiresInSeconds * 1_000;
      const by = person?.id ?? keyId;
      const invitation = { id, role, name: invited, email: address, by };
      const token = newLinkToken();
      await quotas.createWithin({
        setting: 'invitations',
        companyId,
        ownerId: companyId,
        count: (upTo) => invitations.countOpen(companyId, upTo, createdAtMs),
        create: () =>
          links.insert(token, { companyId, expiresAtMs, portal: null, invitation }, createdAtMs),
      });
      // Browsers never send the part after the #.
      const url = `${publicUrl ?? baseUrl()}/dashboard/invitation#${token}`;
      return { data: { id, url, expiresAt: isoTime(expiresAtMs) } };
    },
  });
}

function listRoute(gateway: Gateway): Route {
  return route({
    ...common,
    operationId: 'listInvitations',
    method: 'get',
    summary: 'List the open invitations, the one that lasts longest first',
    query: z.object({ limit: limit(100, 100), skip }),
    response: { status: 200, message: 'Invitations found', data: z.array(openSchema) },
    errors: ['route_not_found'],
    async handle({ caller: { companyId }, query }) {
      await assertPeopleExist(gateway, companyId);
      const found = await gateway.invitations.listOpen(companyId, query, gateway.nowMs());
      return { data: found.map(describeInvitation) };
    },
  });
}

function revokeRoute(gateway: Gateway): Route {
  return route({
    ...common,
    operationId: 'revokeInvitation',
    method: 'delete',
    path: '/invitations/:invitationId',
    audit: { action: 'invitation.revoked', target: 'invitation' },
    summary: 'Revoke an invitation',
    description:
      'The invitation does not open any more. Whoever has used it stays a person of the company.',
    response: { status: 200, message: 'Invitation revoked' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { invitationId = '' } }) {
      await assertPeopleExist(gateway, companyId);
      const { invitations, nowMs } = gateway;
      const revoked = await invitations.revoke(companyId, invitationId, nowMs());
      const { role } = foundOr404(revoked, 'invitation');
      return { changed: { before: { role }, after: {} } };
    },
  });
}
