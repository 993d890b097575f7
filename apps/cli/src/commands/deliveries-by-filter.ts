import type { Command } from '@commander-js/extra-typings';
import type {
  Cancellation,
  DeliveryFilter,
  DeliveryPlan,
  ListedDelivery,
  Resend,
} from '@posthorn/client';
import { FILTER_RULES } from '@posthorn/client/rules';
import { UsageFailure } from '../failures.ts';
import { type Options, parsePastTime } from '../options.ts';
import type { Columns } from '../output.ts';
import type { Session } from '../session.ts';
import { addListCommand, addListOptions, type ListOption } from './objects.ts';

export type Reason = NonNullable<DeliveryFilter['reason']>;
export const STATUSES = [
  'pending',
  'delivered',
  'exhausted',
  'cancelled',
] as const satisfies readonly ListedDelivery['status'][];

/** The options that select deliveries, by the names that the API gives to its filters. */
const FILTERS = {
  webhook: 'webhookId',
  app: 'appId',
  eventType: 'eventType',
  status: 'status',
  waiting: 'waiting',
  reason: 'reason',
  since: 'since',
  until: 'until',
} as const;

type FilterOption = keyof typeof FILTERS;

const OPTIONS: Record<FilterOption, ListOption> = {
  webhook: { flags: '--webhook <id>', help: 'deliveries to this webhook' },
  app: { flags: '--app <id>', help: 'only those of messages to this app' },
  eventType: { flags: '--event-type <type>', help: 'only those of messages of this type' },
  status: {
    flags: '--status <status>',
    help: `only those with this status (${STATUSES.join(', ')}), or with one of several with commas between them`,
    parse: parseStatuses,
  },
  waiting: {
    flags: '--waiting <for>',
    help: 'only pending ones that wait on hold, or for the time of their message',
    choices: ['hold', 'time'],
  },
  reason: {
    flags: '--reason <reason>',
    help: 'only those that were cancelled or exhausted for this reason; all_attempts for all that had no other',
    choices: FILTER_RULES.reason.choices,
  },
  since: {
    flags: '--since <time>',
    help: 'of messages since then, or 2h for ago',
    parse: parsePastTime,
  },
  until: { flags: '--until <time>', help: 'and until then', parse: parsePastTime },
};

/** All options that select deliveries. */
export const FILTER_OPTIONS: readonly ListOption[] = Object.values(OPTIONS);

function parseStatuses(text: string): string {
  const known: readonly string[] = STATUSES;
  const wrong = text.split(',').find((each) => !known.includes(each));
  if (wrong === undefined) return text;
  const statuses = STATUSES.join(', ');
  throw new UsageFailure(`--status takes ${statuses}, and not ${JSON.stringify(wrong)}`);
}

/** Returns the filter of the options that were given; without a field when none was. */
export function filterOf(options: Options): DeliveryFilter {
  const given = Object.entries(FILTERS).filter(([option]) => options[option] !== undefined);
  return Object.fromEntries(given.map(([option, name]) => [name, options[option]]));
}

/** What is done with one delivery, or with all that a filter selects. */
interface Action {
  name: 'cancel' | 'resend';
  description: string;
  example: string;
  options: readonly FilterOption[];
  one: (session: Session, id: string) => PromiseLike<object>;
  plan: (session: Session, filter: DeliveryFilter) => PromiseLike<DeliveryPlan>;
  all: (session: Session, filter: DeliveryFilter) => PromiseLike<Cancellation | Resend>;
  question: (what: string) => string;
}

const CANCEL: Action = {
  name: 'cancel',
  description:
    'end a pending delivery, or all that the options select; an attempt that is under way still counts',
  example: 'posthorn delivery cancel --event-type order.paid --since 2h',
  options: ['webhook', 'app', 'eventType', 'waiting', 'since', 'until'],
  one: ({ api }, id) => api.deliveries.cancel(id),
  plan: ({ api }, filter) => api.cancellations.estimate(filter as object),
  all: ({ api }, filter) => api.cancellations.start(filter),
  question: (what) => `Cancel ${what}?`,
};

const RESEND: Action = {
  name: 'resend',
  description:
    'make one more attempt of a delivery that is no longer pending, or of all failed ones that the options select',
  example: 'posthorn delivery resend --app uid:orders --reason all_attempts --since 2h',
  options: ['webhook', 'app', 'eventType', 'status', 'reason', 'since', 'until'],
  one: ({ api }, id) => api.deliveries.resend(id),
  plan: ({ api }, filter) => api.resends.estimateForFilter(filter as object),
  all: ({ api }, filter) => api.resends.startForFilter(filter),
  question: (what) => `Send ${what} again?`,
};

/** `delivery cancel` and `delivery resend`. */
export function addDeliveryActions(delivery: Command, session: Session): void {
  for (const action of [CANCEL, RESEND]) addAction(delivery, session, action);
}

function addAction(delivery: Command, session: Session, action: Action): void {
  const command = delivery
    .command(action.name)
    .argument('[id]', 'id of the delivery')
    .description(action.description)
    .addHelpText('after', `\nExample:\n  ${action.example}`)
    .action(async (id, options: Options) => {
      const filter = filterOf(options);
      const hasFilter = Object.keys(filter).length > 0;
      if (hasFilter === (id !== undefined)) {
        throw new UsageFailure('Name one delivery by its id, or select several by options');
      }
      session.output.value(
        await (id === undefined ? doAll(session, action, filter) : action.one(session, id)),
      );
    });
  addListOptions(
    command,
    action.options.map((name) => OPTIONS[name]),
  );
}

/** The plan comes first, for people and for scripts with `--yes`. */
async function doAll(session: Session, action: Action, filter: DeliveryFilter): Promise<object> {
  const what = describe(await action.plan(session, filter));
  if (session.options.yes) session.output.note(`${action.name}: ${what}`);
  await session.confirm(action.question(what));
  return action.all(session, filter);
}

function describe({ deliveries, webhooks, isComplete }: DeliveryPlan): string {
  const many = (count: number, one: string, several: string): string =>
    `${count.toLocaleString('en')} ${count === 1 ? one : several}`;
  const counted = `${many(deliveries, 'delivery', 'deliveries')} to ${many(webhooks, 'webhook', 'webhooks')}`;
  return isComplete ? counted : `at least ${counted}`;
}

const COLUMNS: Columns<Cancellation> = {
  id: ({ id }) => id,
  status: ({ status }) => status,
  cancelled: ({ cancelled }) => cancelled,
  'event type': ({ filter }) => filter.eventType,
  of: ({ filter }) => filter.webhookId ?? filter.appId,
  since: ({ filter }) => filter.since,
  until: ({ filter }) => filter.until,
  created: ({ createdAt }) => createdAt,
};

/** `cancellation`. */
export function addCancellationCommands(program: Command, session: Session): void {
  const cancellation = program
    .command('cancellation')
    .description('cancellations of all deliveries that a filter selects');
  addListCommand(cancellation, session, {
    listHelp: 'list cancellations, newest first',
    listOptions: [
      { flags: '--app <id>', help: 'only those of this app' },
      { flags: '--webhook <id>', help: 'only those of this webhook' },
    ],
    list: ({ api }, options) => api.cancellations.list(filterOf(options) as object),
    columns: COLUMNS,
  });
  cancellation
    .command('status')
    .argument('<id>', 'id of the cancellation')
    .description('print a cancellation and how far it is')
    .action(async (id) => {
      session.output.value(await session.api.cancellations.get(id));
    });
}
