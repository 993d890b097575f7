import { CAPABILITIES } from '@posthorn/domain/access/capabilities.ts';
import { z } from 'zod';
import type { CreatePortalLink } from '../../dashboard/portal/create-portal-link.ts';
import type { EndPortalLink } from '../../dashboard/portal/end-portal-link.ts';
import type {
  ListedPortalLink,
  ListPortalLinks,
} from '../../dashboard/portal/list-portal-links.ts';
import { idField, isoTime, timeField } from '../../../http/responses/fields.ts';
import { foundOr404 } from '../../../http/api-error.ts';
import { route, type Route } from '../../../http/request/route.ts';
import { idText, limit, skip, text } from '../fields.ts';
import { pathText, themeSchema } from './portal-fields.ts';

export interface PortalLinkDeps {
  createPortalLink: CreatePortalLink;
  listPortalLinks: ListPortalLinks;
  endPortalLink: EndPortalLink;
}

const tag = 'Portal';
const versionedOnly = true;

const SECONDS = 'must be a whole number from 60 to 604800';
const CAPABILITY = `must be one of ${CAPABILITIES.join(', ')}`;

const linkBody = z
  .object({
    expiresInSeconds: z.int(SECONDS).min(60, SECONDS).max(604_800, SECONDS).meta({
      description: 'How long the link, and the visit that it begins, may last',
      example: 3_600,
    }),
    capabilities: z
      .array(z.enum(CAPABILITIES, CAPABILITY), 'must be a list of capabilities')
      .max(CAPABILITIES.length, `must have at most ${CAPABILITIES.length} capabilities`)
      .meta({
        description:
          'What the visitor may do in the app. `view` is always included; `manage` changes webhooks, `secrets` shows their secrets, `resend` sends failed deliveries again',
        example: ['view', 'resend'],
      }),
    theme: themeSchema.optional(),
    path: pathText.optional().meta({
      description: 'A page of the portal to begin with',
      example: '/webhooks',
    }),
  })
  .meta({ id: 'CreatePortalLink' });

const linkSchema = z
  .object({
    id: idField('plnk'),
    url: text(1, 2_048).meta({
      description: 'Opens the portal once. Whoever has it gets in: give it to one person',
      example: 'https://hooks.example.com/dashboard/portal/comp_01kdyx3m9e7r8s5tqv2wzcbn4a#Y2hv',
    }),
    expiresAt: timeField,
  })
  .meta({ id: 'PortalLink' });

const listedSchema = z
  .object({
    id: idField('plnk'),
    appId: idField('app'),
    apiKeyId: idField('key').nullable().meta({
      description:
        'The API key with which the link ends; null when it was revoked, or the app was deleted',
    }),
    status: z.enum(['unopened', 'opened', 'ended']).meta({
      description: '`ended`: its API key was revoked or has expired, or its app was deleted',
    }),
    capabilities: z.array(z.enum(CAPABILITIES)),
    createdAt: timeField,
    openedAt: timeField.nullable().meta({ description: 'Null until somebody opened it' }),
    expiresAt: timeField,
  })
  .meta({ id: 'ListedPortalLink' });

const listQuery = z.object({
  appId: idText('app').optional().meta({ description: 'Only the links to the portal of this app' }),
  limit: limit(100, 100),
  skip,
});

/** See docs/contract.md C20. */
export function portalLinkRoutes(deps: PortalLinkDeps): Route[] {
  return [createLink(deps), listLinks(deps), revokeLink(deps)];
}

function createLink({ createPortalLink }: PortalLinkDeps): Route {
  return route({
    method: 'post',
    path: '/apps/:appId/portal-links',
    versionedOnly,
    scope: 'webhooks:write',
    audit: { action: 'portal_link.created', target: 'portalLink' },
    tag,
    summary: 'Make a link to the portal of an app',
    description:
      'The link signs one visitor in to pages that show this app only. It opens once, and the visit ends when the link expires or is revoked, or when the API key that made it is revoked or expires. A link made in a session of the dashboard that a sign-in link began lasts as long as asked. A link cannot give what the API key may not do.',
    body: linkBody,
    response: { status: 201, message: 'Portal link created', data: linkSchema },
    errors: ['not_found', 'quota_exceeded'],
    async handle({ caller, params: { appId = '' }, body: { value }, baseUrl }) {
      const { expiresInSeconds, capabilities, theme = {}, path = '' } = value;
      const asked = { appId, expiresInSeconds, capabilities, theme, path, baseUrl };
      const { id, url, expiresAtMs, capabilities: given } = await createPortalLink(caller, asked);
      const expiresAt = isoTime(expiresAtMs);
      const changed = { before: {}, after: { appId, capabilities: given, expiresAt } };
      return { data: { id, url, expiresAt }, changed };
    },
  });
}

function listLinks({ listPortalLinks }: PortalLinkDeps): Route {
  return route({
    method: 'get',
    path: '/portal-links',
    versionedOnly,
    scope: 'read',
    tag,
    summary: 'List the links to portals, those that last longest first',
    description:
      'Links that were revoked or have expired are left out. The URL of a link is shown only when it is made.',
    query: listQuery,
    response: { status: 200, message: 'Portal links found', data: z.array(listedSchema) },
    errors: ['not_found'],
    async handle({ caller, query }) {
      const { companyId } = caller;
      const appId = query.appId ?? caller.appId;
      const page = await listPortalLinks({ ...query, companyId, appId });
      return { data: page.map(describeLink) };
    },
  });
}

function describeLink(link: ListedPortalLink): z.infer<typeof listedSchema> {
  const { id, appId, apiKeyId, status, capabilities, createdAtMs, openedAtMs, expiresAtMs } = link;
  return {
    id,
    appId,
    apiKeyId,
    status,
    capabilities,
    createdAt: isoTime(createdAtMs),
    openedAt: openedAtMs === null ? null : isoTime(openedAtMs),
    expiresAt: isoTime(expiresAtMs),
  };
}

function revokeLink({ endPortalLink }: PortalLinkDeps): Route {
  return route({
    method: 'delete',
    path: '/portal-links/:linkId',
    versionedOnly,
    scope: 'webhooks:write',
    audit: { action: 'portal_link.revoked', target: 'portalLink' },
    tag,
    summary: 'Revoke a link to the portal',
    description:
      'The link does not open any more, and its visit ends at once at this gateway, and within two seconds at others.',
    response: { status: 200, message: 'Portal link revoked' },
    errors: ['not_found'],
    async handle({ caller: { companyId, appId: onlyOf }, params: { linkId = '' } }) {
      const ended = await endPortalLink({ companyId, linkId, appId: onlyOf });
      const { appId, capabilities } = foundOr404(ended, 'portal link');
      return { changed: { before: { appId, capabilities }, after: {} } };
    },
  });
}
