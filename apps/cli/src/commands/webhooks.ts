import { type Command, Option } from '@commander-js/extra-typings';
import type { FoundWebhook, OrderingKey, Webhook } from '@posthorn/client';
import { WEBHOOK_RULES } from '@posthorn/client/rules';
import {
  addFields,
  type Field,
  fieldsWith,
  type Options,
  parseCount,
  parsePastTime,
  parseSeconds,
  readBody,
} from '../options.ts';
import type { Columns } from '../output.ts';
import type { Session } from '../session.ts';
import {
  addHoldCommands,
  addObjectCommands,
  ID,
  LIST_LIMIT,
  type ListOption,
  METADATA,
  type ObjectKind,
  PROJECT,
  UID,
} from './objects.ts';

const SHOW_SECRETS: ListOption = {
  flags: '--show-secrets',
  help: 'print secrets too, which the audit log records',
};

const WEBHOOK_FIELDS = fieldsWith(WEBHOOK_RULES, [
  { flags: '--url <url>', help: 'address of the endpoint' },
  { flags: '--app <id>', name: 'appId', help: 'app whose messages it gets, fixed at the creation' },
  PROJECT,
  {
    flags: '--environment-id <id>',
    help: 'environment of a webhook that belongs to a project, fixed at the creation',
  },
  { flags: '--name <name>', help: 'name' },
  UID,
  {
    flags: '--event-type <type>',
    name: 'eventTypes',
    help: 'event type to deliver, or order.* for all that begin so (repeatable; all when left out)',
  },
  {
    flags: '--filter <json>',
    help: 'conditions that a message must meet, as JSON or @ and a file',
  },
  { flags: '--disabled', help: 'deliver nothing to it (otherwise --no-disabled)' },
  {
    flags: '--rate-limit <count>',
    name: 'rateLimitPerSecond',
    help: 'most attempts per second',
  },
  {
    flags: '--attempt-timeout <duration>',
    name: 'timeoutSeconds',
    help: 'time for one attempt, such as 10s',
    parse: parseSeconds,
  },
  {
    flags: '--max-attempts <count>',
    help: 'attempts of a delivery, the first ones of the schedule',
  },
  {
    flags: '--final-status <code>',
    name: 'finalStatusCodes',
    help: 'status after which a delivery is not tried again (repeatable)',
  },
  {
    flags: '--on-gone <what>',
    help: 'whether status 410 disables the webhook',
  },
  {
    flags: '--obey-control-headers',
    help: 'let the endpoint control deliveries by the response header webhook-delivery (otherwise --no-obey-control-headers)',
  },
  {
    flags: '--ordering <how>',
    help: 'whether deliveries with the same ordering key wait for each other',
  },
  {
    flags: '--header <header>',
    name: 'customHeaders',
    help: '"name: value" to send along (repeatable); put secret ones into --file',
  },
  METADATA,
  {
    flags: '--signature-headers <names>',
    help: 'webhook, or webhook and svix for receivers that use a library of Svix (repeatable)',
  },
  {
    flags: '--signature-algorithm <name>',
    help: 'what signs the deliveries',
  },
  { flags: '--secret', help: 'secret of the signatures in place of a random one' },
  {
    flags: '--auth-method <name>',
    help: 'how deliveries authenticate beside their signature',
  },
  { flags: '--hmac-header <name>', help: 'header of the additional HMAC' },
  { flags: '--hmac-secret', help: 'key of the additional HMAC' },
  { flags: '--basic-auth-username <name>', help: 'user name for basic' },
  { flags: '--basic-auth-password', help: 'password for basic' },
  { flags: '--api-key-header <name>', help: 'header of the key for apiKey' },
  { flags: '--api-key', help: 'key that the endpoint expects, for apiKey' },
  {
    flags: '--oauth2-token-url <url>',
    name: 'oauth2TokenUrl',
    help: 'where access tokens are requested',
  },
  { flags: '--oauth2-client-id <id>', help: 'client id for oauth2' },
  { flags: '--oauth2-client-secret', help: 'client secret for oauth2' },
  { flags: '--oauth2-scope <scope>', help: 'scope of the access tokens' },
  { flags: '--oauth2-audience <text>', help: 'audience of the access tokens' },
  {
    flags: '--oauth2-client-authentication <how>',
    help: 'whether id and secret go into a header or into the body',
  },
]);

const WEBHOOK_KIND: ObjectKind<Webhook | FoundWebhook> = {
  name: 'webhook',
  description: 'webhooks, which deliver messages to an endpoint',
  fields: WEBHOOK_FIELDS,
  complete: (session, body) => {
    const app = session.appOf(undefined);
    if (app !== undefined && !('appId' in body) && !('projectId' in body)) body.appId = app;
  },
  columns: {
    id: ({ id }) => id,
    uid: ({ uid }) => uid,
    name: ({ name }) => name,
    url: ({ url }) => url,
    'event types': ({ eventTypes }) => (eventTypes.length === 0 ? 'all' : eventTypes.join(',')),
    state: ({ disabled }) => (disabled ? 'disabled' : 'enabled'),
  },
  deletes: 'and cancel its pending deliveries',
  createExample:
    'posthorn webhook create --app uid:customer-17 --url https://example.com/hooks --event-type order.paid',
  updateExample: 'posthorn webhook update uid:orders --rate-limit 10 --null timeoutSeconds',
  listOptions: [
    { flags: '--app <id>', help: 'only webhooks of this app' },
    {
      flags: '--search <text>',
      help: 'only webhooks whose URL, name or event types have this text',
    },
    SHOW_SECRETS,
  ],
  listHelp: 'list webhooks, oldest first; with --search, newest first',
  list: (session, { app, search, showSecrets }) => {
    const appId = session.appOf(app as string | undefined);
    const { webhooks } = session.api;
    const ofApp = appId === undefined ? {} : { appId };
    return search === undefined
      ? webhooks.list({ ...ofApp, secrets: showSecrets === true })
      : webhooks.find({ ...ofApp, text: search as string });
  },
  getOptions: [SHOW_SECRETS],
  get: ({ api }, id, { showSecrets }) => api.webhooks.get(id, { secrets: showSecrets === true }),
  create: (api, body, options) => api.webhooks.create(body, options),
  update: (api, id, body, options) => api.webhooks.update(id, body, options),
  delete: (api, id) => api.webhooks.delete(id),
};

const ROTATION_FIELDS: readonly Field[] = [
  {
    flags: '--grace <duration>',
    name: 'graceSeconds',
    help: 'how long the old secret signs beside the new one, such as 24h',
    parse: parseSeconds,
  },
  { flags: '--secret', help: 'new secret in place of a random one', secret: true },
];

export function addWebhookCommands(program: Command, session: Session): void {
  const webhook = addObjectCommands(program, session, WEBHOOK_KIND);
  webhook
    .command('test')
    .argument('<id>', ID)
    .description('send a test message to the webhook alone, and print its delivery')
    .option('--event-type <name>', 'send the example that the catalogue has of this event type')
    .action(async (id, { eventType }) => {
      const test = eventType === undefined ? undefined : { eventType };
      session.output.value(await session.api.webhooks.test(id, test));
    });
  webhook
    .command('health')
    .argument('<id>', ID)
    .description('print circuit, success rate, latency and backlog')
    .action(async (id) => {
      session.output.value(await session.api.webhooks.health(id));
    });
  webhook
    .command('cancel-pending')
    .argument('<id>', ID)
    .description('end its pending deliveries, however many there are')
    .option('--before <time>', 'only those of messages before then, or 2h for ago', parsePastTime)
    .action(async (id, { before }) => {
      await session.confirm(`Cancel the pending deliveries to the webhook ${id}?`);
      const pending = before === undefined ? {} : { createdBefore: before };
      session.output.value(await session.api.webhooks.cancelPending(id, pending));
    });
  addOrderingKeys(webhook, session);
  addRotateSecret(webhook, session);
  const of = 'the webhook';
  addHoldCommands(webhook, session, { name: 'webhook', of, api: ({ webhooks }) => webhooks });
}

const KEY_COLUMNS: Columns<OrderingKey> = {
  key: ({ orderingKey }) => orderingKey,
  state: ({ state }) => state,
  delivery: ({ headDeliveryId }) => headDeliveryId,
  'next attempt': ({ nextAttemptAt }) => nextAttemptAt,
  waiting: ({ waiting }) => waiting,
  since: ({ since }) => since,
};

function addOrderingKeys(webhook: Command, session: Session): void {
  const keys = webhook
    .command('ordering-keys')
    .description('ordering keys whose deliveries wait for an earlier one');
  keys
    .command('list')
    .argument('<id>', ID)
    .description('list them, blocked ones first')
    .addOption(new Option('--state <state>', 'only these').choices(['blocked', 'waiting']))
    .option('--limit <count>', 'print at most this many', parseCount, LIST_LIMIT)
    .action(async (id, { state, limit }) => {
      const listed = session.api.webhooks.orderingKeys(id, state === undefined ? {} : { state });
      await session.output.list(listed, KEY_COLUMNS, limit);
    });
  keys
    .command('skip')
    .argument('<id>', ID)
    .argument('<key>', 'ordering key that is blocked')
    .requiredOption('--delivery <id>', 'exhausted delivery at which it is blocked')
    .description('go on behind the exhausted delivery, which stays so')
    .action(async (id, orderingKey, { delivery: deliveryId }) => {
      await session.confirm(`Skip the delivery ${deliveryId} of the key ${orderingKey}?`);
      const { webhooks } = session.api;
      session.output.value(await webhooks.skipOrderingKey(id, { orderingKey, deliveryId }));
    });
}

function addRotateSecret(webhook: Command, session: Session): void {
  const rotate: Command<[string]> = webhook
    .command('rotate-secret')
    .argument('<id>', ID)
    .description('replace the secret, and print the webhook with the new one');
  addFields(rotate, ROTATION_FIELDS);
  rotate.action(async (id, options: Options) => {
    const body = await readBody(session, ROTATION_FIELDS, options);
    session.output.value(await session.api.webhooks.rotateSecret(id, body));
  });
}
