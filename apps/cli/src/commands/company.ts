import type { Command } from '@commander-js/extra-typings';
import type { ApiKey, AuditEvent, ListedPortalLink, SigningKey } from '@posthorn/client';
import { API_KEY_RULES, PORTAL_LINK_RULES } from '@posthorn/client/rules';
import {
  addFields,
  type Field,
  fieldsWith,
  type Options,
  parseEach,
  parsePastTime,
  parseSeconds,
  readBody,
  requireChange,
  requireFields,
} from '../options.ts';
import { UsageFailure } from '../failures.ts';
import type { Columns } from '../output.ts';
import type { Session } from '../session.ts';
import { addListCommand, ID } from './objects.ts';

/* What belongs to a whole company: API keys, signing keys, the portal, and the audit log. */

const API_KEY_FIELDS = fieldsWith(API_KEY_RULES, [
  { flags: '--name <name>', help: 'name' },
  {
    flags: '--scope <scope>',
    name: 'scopes',
    help: 'what the key may do (repeatable; everything when left out)',
  },
  { flags: '--app <id>', name: 'appId', help: 'the only app that the key may be used for' },
  {
    flags: '--expires <time>',
    name: 'expiresAt',
    help: 'when it stops working, or 30d for in 30 days; never when left out',
  },
]);

const API_KEY_COLUMNS: Columns<ApiKey> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  prefix: ({ prefix }) => prefix,
  scopes: ({ scopes }) => scopes.join(','),
  app: ({ appId }) => appId,
  expires: ({ expiresAt }) => expiresAt,
  'last used': ({ lastUsedAt }) => lastUsedAt,
};

/** `api-key`. */
export function addApiKeyCommands(program: Command, session: Session): void {
  const apiKey: Command = program.command('api-key').description('API keys of the company');
  addListCommand(apiKey, session, {
    listHelp: 'list API keys, oldest first, without the keys themselves',
    listOptions: [],
    list: ({ api }) => api.apiKeys.list(),
    columns: API_KEY_COLUMNS,
  });
  const create: Command = apiKey
    .command('create')
    .description('create an API key, and print it this once')
    .addHelpText(
      'after',
      '\nExample:\n  posthorn api-key create --name "Order service" --scope messages:write --expires 90d',
    );
  addFields(create, API_KEY_FIELDS);
  create.action(async (options: Options) => {
    const body = await readBody(session, API_KEY_FIELDS, options);
    requireFields(API_KEY_FIELDS, body);
    session.output.value(await session.api.apiKeys.create(body as { name: string }));
    noteShownOnce(session);
  });
  apiKey
    .command('rotate')
    .argument('<id>', 'id of the key')
    .description('create a key with the same rights, and print it this once')
    .option('--grace <duration>', 'how long the old key works beside it, such as 24h', parseSeconds)
    .action(async (id, { grace }) => {
      const rotation = grace === undefined ? {} : { graceSeconds: grace };
      session.output.value(await session.api.apiKeys.rotate(id, rotation));
      noteShownOnce(session);
    });
  apiKey
    .command('delete')
    .argument('<id>', 'id of the key')
    .description('revoke an API key at once')
    .action(async (id) => {
      await session.confirm(`Delete the API key ${id}? Requests with it are refused from then on.`);
      await session.api.apiKeys.revoke(id);
      session.output.done(`The API key ${id} is deleted.`, { id });
    });
}

function noteShownOnce({ output }: Session): void {
  output.note('Store the key now: it is not shown again.');
}

const SIGNING_KEY_COLUMNS: Columns<SigningKey> = {
  id: ({ id }) => id,
  algorithm: ({ algorithm }) => algorithm,
  'public key': ({ publicKey }) => publicKey,
  created: ({ createdAt }) => createdAt,
  expires: ({ expiresAt }) => expiresAt,
};

/** `signing-key`. */
export function addSigningKeyCommands(program: Command, session: Session): void {
  const signingKey: Command = program
    .command('signing-key')
    .description('keys of the company for signatures with ed25519');
  addListCommand(signingKey, session, {
    listHelp: 'list the public keys',
    listOptions: [],
    list: ({ api }) => api.signingKeys.list(),
    columns: SIGNING_KEY_COLUMNS,
  });
  signingKey
    .command('rotate')
    .description('create a new key; the old one signs beside it for a while')
    .option('--grace <duration>', 'how long the old key signs beside it, such as 24h', parseSeconds)
    .action(async ({ grace }) => {
      const rotation = grace === undefined ? {} : { graceSeconds: grace };
      session.output.value(await session.api.signingKeys.rotate(rotation));
    });
}

const LINK_FIELDS = fieldsWith(PORTAL_LINK_RULES, [
  {
    flags: '--expires-in <duration>',
    name: 'expiresInSeconds',
    help: 'how long the link, and the visit that it begins, may last (default: 1h)',
    parse: parseSeconds,
  },
  {
    flags: '--capability <name>',
    name: 'capabilities',
    help: 'what the visitor may do (repeatable; default: view)',
  },
  { flags: '--path <path>', help: 'page of the portal to begin with, such as /webhooks' },
]);

const PORTAL_LINK_COLUMNS: Columns<ListedPortalLink> = {
  id: ({ id }) => id,
  app: ({ appId }) => appId,
  status: ({ status }) => status,
  capabilities: ({ capabilities }) => capabilities.join(','),
  expires: ({ expiresAt }) => expiresAt,
};

/** `portal`. */
export function addPortalCommands(program: Command, session: Session): void {
  const portal: Command = program
    .command('portal')
    .description('links to the portal, where your customers see their app');
  addLink(portal, session);
  addListCommand(portal, session, {
    listHelp: 'list portal links',
    listOptions: [{ flags: '--app <id>', help: 'only links of this app' }],
    list: ({ api }, { app }) =>
      api.portalLinks.list(app === undefined ? {} : { appId: app as string }),
    columns: PORTAL_LINK_COLUMNS,
  });
  portal
    .command('revoke')
    .argument('<id>', 'id of the link')
    .description('end a portal link, and the visit that it began')
    .action(async (id) => {
      await session.confirm(`Revoke the portal link ${id}?`);
      await session.api.portalLinks.revoke(id);
      session.output.done(`The portal link ${id} is revoked.`, { id });
    });
  addPortalSettings(portal, session);
}

function addLink(portal: Command, session: Session): void {
  const link: Command<[string | undefined]> = portal
    .command('link')
    .argument('[app]', `app, ${ID}; that of .posthorn/config.toml when left out`)
    .description('create a portal link of an app, and print it this once')
    .addHelpText(
      'after',
      '\nExample:\n  posthorn portal link uid:customer-17 --capability manage --expires-in 2h',
    );
  addFields(link, LINK_FIELDS);
  link.action(async (given, options: Options) => {
    const app = session.appOf(given);
    if (app === undefined)
      throw new UsageFailure('<app> is missing, and no .posthorn/config.toml has one');
    const body = await readBody(session, LINK_FIELDS, options);
    const defaults = { expiresInSeconds: 3_600, capabilities: ['view' as const] };
    const created = await session.api.portalLinks.create(app, { ...defaults, ...body });
    session.output.value(created);
    session.output.note('Whoever has the address gets in, once: pass it to one person.');
  });
}

const SETTINGS_FIELDS: readonly Field[] = [
  {
    flags: '--origin <origin>',
    name: 'origins',
    help: 'origin of pages that may show the portal in a frame (repeatable); replaces all',
    parse: parseEach,
  },
];

function addPortalSettings(portal: Command, session: Session): void {
  portal
    .command('settings')
    .description('print the settings of the portal')
    .action(async () => {
      session.output.value(await session.api.portalSettings.get());
    });
  const update: Command = portal
    .command('update-settings')
    .description('change the settings of the portal');
  addFields(update, SETTINGS_FIELDS);
  update.action(async (options: Options) => {
    const body = await readBody(session, SETTINGS_FIELDS, options);
    requireChange(SETTINGS_FIELDS, body);
    const settings = await session.api.portalSettings.update(body);
    session.output.value(settings);
  });
}

const AUDIT_COLUMNS: Columns<AuditEvent> = {
  time: ({ createdAt }) => createdAt,
  action: ({ action }) => action,
  actor: ({ actor }) => nameOfActor(actor),
  target: ({ target }) => target.id ?? target.kind,
  outcome: ({ outcome, code }) => code ?? outcome,
  address: ({ clientAddress }) => clientAddress,
};

function nameOfActor(actor: AuditEvent['actor']): string {
  switch (actor.kind) {
    case 'apiKey':
      return actor.keyId;
    case 'portalLink':
      return actor.linkId;
    case 'person':
      return actor.name ?? actor.personId;
    case 'admin':
    case 'system':
      return actor.kind;
  }
}

/** `audit-event`. */
export function addAuditCommands(program: Command, session: Session): void {
  const audit: Command = program
    .command('audit-event')
    .description('the audit log: who changed what, and who read secrets');
  addListCommand(audit, session, {
    listHelp: 'list audit events, newest first',
    listOptions: [
      { flags: '--action <action>', help: 'only this action, such as webhook.updated' },
      { flags: '--actor <id>', help: 'only what this API key or person did, or admin, or system' },
      { flags: '--target <id>', help: 'only what was done to this object' },
      { flags: '--since <time>', help: 'since then, or 2h for ago', parse: parsePastTime },
      { flags: '--until <time>', help: 'until then', parse: parsePastTime },
    ],
    list: ({ api }, { action, actor, target, since, until }) =>
      api.auditEvents.list({
        action: action as AuditEvent['action'],
        actor: actor as string,
        targetId: target as string,
        since: since as string,
        until: until as string,
      }),
    columns: AUDIT_COLUMNS,
  });
}
