import type { Command } from '@commander-js/extra-typings';
import type { ListedMessage, Message } from '@posthorn/client';
import { parseTimeoutMs, parsePastTime } from '../options.ts';
import type { Columns } from '../output.ts';
import { CheckFailure } from '../failures.ts';
import { stateOf } from '../send/send-report.ts';
import type { Session } from '../session.ts';
import { addSend, endOf } from './message-send.ts';
import { STATUSES } from './deliveries-by-filter.ts';
import { addListCommand } from './objects.ts';
import { addTail } from './tail.ts';

const MESSAGE_COLUMNS: Columns<ListedMessage> = {
  id: ({ id }) => id,
  created: ({ createdAt }) => createdAt,
  'event type': ({ eventType }) => eventType,
  status: ({ status }) => status,
  delivered: (message) => shareDelivered(message),
  tags: ({ tags }) => tags.join(','),
  'external id': ({ externalId }) => externalId,
};

function shareDelivered({ deliveries }: Pick<Message, 'deliveries'>): string {
  const count = deliveries.filter(({ status }) => status === 'delivered').length;
  return `${count}/${deliveries.length}`;
}

const MESSAGE_STATUSES = [
  ...STATUSES,
  'no_target',
] as const satisfies readonly ListedMessage['status'][];

const LIST_OPTIONS = [
  { flags: '--app <id>', help: 'only messages of this app' },
  { flags: '--webhook <id>', help: 'only messages with a delivery to this webhook' },
  { flags: '--event-type <type>', help: 'only messages of this type' },
  { flags: '--tag <tag>', help: 'only messages with this tag' },
  { flags: '--external-id <id>', help: 'only messages with this id of yours' },
  {
    flags: '--status <status>',
    help: 'only messages with this status',
    choices: MESSAGE_STATUSES,
  },
  { flags: '--since <time>', help: 'created since then, or 2h for ago', parse: parsePastTime },
  { flags: '--until <time>', help: 'created until then', parse: parsePastTime },
];

/** For people: without the attempt that older clients read, which is one of those of the deliveries. */
const messageOf = (message: Message): object => ({ ...message, deliveryAttempt: undefined });

/** `message`. */
export function addMessageCommands(program: Command, session: Session): void {
  const message: Command = program
    .command('message')
    .description('messages, which are delivered to the webhooks of an app');
  addSend(message, session);
  addListCommand(message, session, {
    listHelp: 'list messages, newest first',
    listOptions: LIST_OPTIONS,
    list: (session, { app, webhook, eventType, tag, externalId, status, since, until }) => {
      const appId = session.appOf(app as string | undefined);
      return session.api.messages.list({
        ...(appId === undefined ? {} : { appId }),
        webhookId: webhook as string,
        eventType: eventType as string,
        tag: tag as string,
        externalId: externalId as string,
        status: status as ListedMessage['status'],
        since: since as string,
        until: until as string,
      });
    },
    columns: MESSAGE_COLUMNS,
  });
  message
    .command('get')
    .argument('<id>', 'id of the message')
    .description('print a message with the state of its deliveries')
    .action(async (id) => {
      session.output.value(await session.api.messages.get(id), messageOf);
    });
  message
    .command('erase-payload')
    .argument('<id>', 'id of the message')
    .description('erase the payload and the stored responses for good; pending deliveries end')
    .action(async (id) => {
      await session.confirm(`Erase the payload of ${id} for good, and cancel what is pending?`);
      session.output.value(await session.api.messages.erasePayload(id));
    });
  addWait(message, session);
  addTail(message, session);
}

function addWait(message: Command, session: Session): void {
  message
    .command('wait')
    .argument('<id>', 'id of the message')
    .description('wait until no delivery is pending; exit code 5 unless all are delivered')
    .option('--timeout <duration>', 'wait at most this long (default: 60s)', parseTimeoutMs)
    .action(async (id, { timeout }) => {
      const ended = await endOf(session, id, timeout);
      if (ended === null) throw new CheckFailure(`${id} is still pending at the time limit`);
      const { deliveries, delivered } = ended;
      const share = deliveries.length === 0 ? '' : ` (${shareDelivered(ended)})`;
      session.output.done(`${stateOf(ended)}${share}`, ended);
      if (!delivered) throw new CheckFailure(stateOf(ended));
    });
}
