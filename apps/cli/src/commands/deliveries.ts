import type { Command } from '@commander-js/extra-typings';
import type {
  Delivery,
  List,
  ListedDelivery,
  Resend,
  ResendFailedOfWebhook,
} from '@posthorn/client';
import { UsageFailure } from '../failures.ts';
import { type Options, parseEach, parsePastTime } from '../options.ts';
import type { Columns } from '../output.ts';
import type { Session } from '../session.ts';
import { addDeliveryActions, FILTER_OPTIONS, filterOf } from './deliveries-by-filter.ts';
import { addListCommand, ID } from './objects.ts';

/** Those of one message have their attempts. */
const DELIVERY_COLUMNS: Columns<Delivery | ListedDelivery> = {
  id: ({ id }) => id,
  message: ({ messageId }) => messageId,
  webhook: ({ webhookId }) => webhookId,
  status: ({ status }) => status,
  attempts: ({ attemptCount }) => attemptCount,
  'last outcome': (each) => ('attempts' in each ? each.attempts.at(-1)?.outcome : each.lastOutcome),
  'next attempt': ({ nextAttemptAt }) => nextAttemptAt,
  'waits for': ({ waiting }) => waiting,
  reason: ({ reason }) => reason,
};

const LIST_OPTIONS = [
  { flags: '--message <id>', help: 'deliveries of this message, with their attempts' },
  ...FILTER_OPTIONS,
];

/** `delivery`. */
export function addDeliveryCommands(program: Command, session: Session): void {
  const delivery = program
    .command('delivery')
    .description('deliveries: one message to one webhook, with its attempts');
  addListCommand(delivery, session, {
    listHelp: 'list deliveries, newest message first, or those of one message',
    listOptions: LIST_OPTIONS,
    list: listOf,
    columns: DELIVERY_COLUMNS,
  });
  delivery
    .command('get')
    .argument('<id>', 'id of the delivery')
    .description('print a delivery with its newest 200 attempts')
    .action(async (id) => {
      session.output.value(await session.api.deliveries.get(id), deliveryOf);
    });
  addDeliveryActions(delivery, session);
  delivery
    .command('erase-responses')
    .argument('<id>', 'id of the delivery')
    .description('erase bodies and headers of the stored responses for good')
    .action(async (id) => {
      await session.confirm(`Erase the stored responses of ${id} for good?`);
      session.output.value(await session.api.deliveries.eraseResponses(id));
    });
}

/** For people: of each attempt what tells why the delivery is as it is. */
function deliveryOf({ attempts, ...delivery }: Delivery): object {
  return {
    ...delivery,
    attempts: attempts.map((attempt) => ({
      number: attempt.number,
      at: attempt.createdAt,
      outcome: attempt.outcome,
      status: attempt.statusCode,
      ms: attempt.durationMs,
      reason: attempt.failureReason,
      response: attempt.response,
    })),
  };
}

function listOf({ api }: Session, options: Options): List<Delivery | ListedDelivery> {
  const filter = filterOf(options);
  if (options.message === undefined) return api.deliveries.list(filter as object);
  if (Object.keys(filter).length > 0) throw new UsageFailure('--message stands alone');
  return api.messages.listDeliveries(options.message as string);
}

const RESEND_COLUMNS: Columns<Resend> = {
  id: ({ id }) => id,
  kind: ({ kind }) => kind,
  of: ({ appId, webhookId }) => webhookId ?? appId,
  status: ({ status }) => status,
  total: ({ total }) => total,
  done: ({ done }) => done,
  succeeded: ({ succeeded }) => succeeded,
  failed: ({ failed }) => failed,
  created: ({ createdAt }) => createdAt,
};

/** The outcomes of attempts that fail. */
const OUTCOMES = [
  'http_3xx',
  'http_4xx',
  'http_429',
  'http_5xx',
  'timeout',
  'dns_error',
  'connect_error',
  'tls_error',
  'egress_blocked',
  'response_too_large',
  'aborted',
  'token_failed',
] as const satisfies readonly ResendFailedOfWebhook['outcome'][];

/** `resend`. */
export function addResendCommands(program: Command, session: Session): void {
  const resend = program
    .command('resend')
    .description('resends of every failed delivery of a webhook or an app');
  addStart(resend, session);
  addEstimate(resend, session);
  addListCommand(resend, session, {
    listHelp: 'list resends, newest first',
    listOptions: [
      { flags: '--app <id>', help: 'only those of this app' },
      { flags: '--webhook <id>', help: 'only those of this webhook' },
    ],
    list: ({ api }, { app, webhook }) =>
      api.resends.list({
        ...(app === undefined ? {} : { appId: app as string }),
        ...(webhook === undefined ? {} : { webhookId: webhook as string }),
      }),
    columns: RESEND_COLUMNS,
  });
  resend
    .command('status')
    .argument('<id>', 'id of the resend')
    .description('print a resend and how far it is')
    .action(async (id) => {
      session.output.value(await session.api.resends.get(id));
    });
  resend
    .command('abort')
    .argument('<id>', 'id of the resend')
    .description('stop a resend; what it has started is still sent')
    .action(async (id) => {
      session.output.value(await session.api.resends.abort(id));
    });
}

function addStart(resend: Command, session: Session): void {
  resend
    .command('start')
    .description('send every failed delivery of a webhook or an app again')
    .option('--webhook <id>', `webhook: ${ID}`)
    .option('--app <id>', `app: ${ID}`)
    .requiredOption('--since <time>', 'failed deliveries since then, or 2h for ago', parsePastTime)
    .option('--until <time>', 'and until then; now when left out', parsePastTime)
    .addOption(
      resend
        .createOption(
          '--outcome <outcome>',
          'only those of a webhook whose last attempt ended this way',
        )
        .choices(OUTCOMES),
    )
    .addHelpText('after', '\nExample:\n  posthorn resend start --webhook uid:orders --since 2h')
    .action(async ({ webhook, app, since, until, outcome }) => {
      const period = { since, ...(until === undefined ? {} : { until }) };
      const target = targetOf({ webhook, app });
      if (target.app !== undefined) {
        if (outcome !== undefined) throw new UsageFailure('--outcome is for --webhook alone');
        session.output.value(await session.api.resends.startForApp(target.app, period));
        return;
      }
      const chosen = { ...period, ...(outcome === undefined ? {} : { outcome }) };
      session.output.value(await session.api.resends.startForWebhook(target.webhook, chosen));
    });
}

function addEstimate(resend: Command, session: Session): void {
  resend
    .command('estimate')
    .description('count the deliveries that a resend would send')
    .option('--webhook <id>', `webhook: ${ID}`)
    .option('--app <id>', `app: ${ID}`)
    .requiredOption('--since <time>', 'failed deliveries since then, or 2h for ago', parsePastTime)
    .action(async ({ webhook, app, since }) => {
      const target = targetOf({ webhook, app });
      const { resends } = session.api;
      session.output.value(
        await (target.app === undefined
          ? resends.estimateForWebhook(target.webhook, { since })
          : resends.estimateForApp(target.app, { since })),
      );
    });
}

/** `replay`. Its progress, list and abort are those of `resend`. */
export function addReplayCommands(program: Command, session: Session): void {
  const replay = program
    .command('replay')
    .description('send a webhook messages of its app that it was no target of');
  addReplay(replay, 'start', 'send what the webhook has missed, in the background').action(
    async ({ webhook, since, until, eventType }) => {
      const body = { since, ...(until && { until }), ...(eventType && { eventTypes: eventType }) };
      session.output.value(await session.api.resends.startReplay(webhook, body));
    },
  );
  addReplay(replay, 'estimate', 'count the messages that a replay would send').action(
    async ({ webhook, since, until, eventType }) => {
      const types = eventType && { eventTypes: eventType.join(',') };
      const query = { since, ...(until && { until }), ...types };
      session.output.value(await session.api.resends.estimateReplay(webhook, query));
    },
  );
}

function addReplay(replay: Command, name: string, description: string) {
  return replay
    .command(name)
    .description(description)
    .requiredOption('--webhook <id>', `webhook: ${ID}`)
    .requiredOption('--since <time>', 'messages since then, or 2h for ago', parsePastTime)
    .option('--until <time>', 'and until then; now when left out', parsePastTime)
    .option(
      '--event-type <type>',
      'only messages of this type (repeatable; all that it receives when left out)',
      parseEach,
    );
}

/** The app of the project's configuration does not count: a resend of a whole app is to be named. */
function targetOf({
  webhook,
  app,
}: {
  webhook: string | undefined;
  app: string | undefined;
}): { webhook: string; app?: undefined } | { app: string } {
  if (webhook !== undefined && app === undefined) return { webhook };
  if (app !== undefined && webhook === undefined) return { app };
  throw new UsageFailure('Set --webhook or --app, one of both');
}
