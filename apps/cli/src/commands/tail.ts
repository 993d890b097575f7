import { type Command, Option } from '@commander-js/extra-typings';
import {
  ConnectionError,
  type Delivery,
  type DeliveryStatus,
  type ListedMessage,
  type Message,
  NotFoundError,
  type Posthorn,
  RateLimitError,
  ServerError,
  TimeoutError,
} from '@posthorn/client';
import { setTimeout as wait } from 'node:timers/promises';
import { clockOf, escapeControls, type Output } from '../output.ts';
import type { Session } from '../session.ts';
import { STATUSES } from './deliveries-by-filter.ts';

const POLL_EVERY_MS = 1_000;
/** Between polls while the API does not answer. */
const MAX_PAUSE_MS = 15_000;
/**
 * Gateways store messages at the same time, and their clocks differ: each poll reads the last seconds again, and passes
 * on what it has not seen.
 */
const OVERLAP_MS = 5_000;
/** What one poll keeps until it can be passed on, oldest first. A page has at most 100 messages and 1 MiB. */
const MAX_NEW = 5_000;
const MAX_NEW_CHARS = 32 * 1_048_576;
/** Messages whose final status is waited for. Retries take up to days, so the oldest are given up. */
const MAX_PENDING = 1_000;
const FIRST_CHECK_MS = 2_000;
const MAX_CHECK_MS = 60_000;
const CHECKS_PER_POLL = 20;
/** Messages whose attempts are to be read yet, and deliveries whose attempts are printed. The oldest are given up. */
const MAX_UNREAD = 1_000;
const MAX_KNOWN = 20_000;
/** Deliveries of one message whose attempts are printed. */
const MAX_DELIVERIES = 100;

type MessageStatus = Pick<Message, 'id' | 'status' | 'deliveries' | 'eventType'>;
type Attempt = Delivery['attempts'][number];
type AttemptedDelivery = Pick<
  Delivery,
  'id' | 'messageId' | 'webhookId' | 'status' | 'nextAttemptAt' | 'attemptCount' | 'attempts'
>;

export type TailEvent =
  | { type: 'message'; message: ListedMessage }
  | { type: 'attempt'; delivery: AttemptedDelivery; attempt: Attempt }
  | { type: 'status'; message: MessageStatus }
  /** More messages came than one poll keeps: those before this time were passed over. */
  | { type: 'gap'; before: string };

export interface TailSource {
  /** Messages of this time or later, newest first. */
  list: (from: string) => AsyncIterable<ListedMessage>;
  /** Null when it is gone. */
  get: (messageId: string) => Promise<MessageStatus | null>;
  /** The deliveries of a message; none when it is gone. */
  deliveries: (messageId: string) => Promise<readonly AttemptedDelivery[]>;
  nowMs: () => number;
}

/** What is printed. */
export interface TailFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
  eventType?: string | undefined;
  status?: DeliveryStatus | undefined;
}

const HELP = `
It prints a line for each new message, each attempt with its status code, and each final status.
With --status exhausted, it prints what has failed for good, and its attempts.`;

/** `message tail`. */
export function addTail(message: Command, session: Session): void {
  message
    .command('tail')
    .description('print new messages, their attempts and their final status, until Ctrl-C')
    .option('--app <id>', 'only messages of this app')
    .option('--webhook <id>', 'only messages and attempts to this webhook')
    .option('--event-type <type>', 'only messages of this type')
    .addOption(new Option('--status <status>', 'only what has this status now').choices(STATUSES))
    .addHelpText('after', HELP)
    .action(({ app, webhook, eventType, status }) => {
      const filter = { appId: session.appOf(app), webhookId: webhook, eventType, status };
      return session.watch(() => tail(session, filter));
    });
}

async function tail(session: Session, given: TailFilter): Promise<void> {
  const { api, output } = session;
  const { signal } = session.world;
  const filter = { ...given, webhookId: await idOfWebhook(api, given.webhookId) };
  const { appId } = filter;
  // Without this app there would be nothing to print for ever: the list of its messages is empty.
  if (appId !== undefined) await api.apps.get(appId);
  const messages = new MessageTail(sourceOf(api, filter), await clockOfApi(api));
  output.event('ready', { ...filter, appId: appId ?? null }, null);
  output.note(`ready: new messages of ${appId ?? 'all apps'}. Ctrl-C ends it.`);
  let failures = 0;
  for (;;) {
    try {
      const events = await messages.poll();
      for (const event of events) if (isWanted(event, filter)) print(output, event);
      if (failures > 0) output.note('The API answers again.');
      failures = 0;
    } catch (error) {
      if (!isPassing(error)) throw error;
      if (failures === 0) output.note(`The API does not answer (${error.message}). Trying again.`);
      failures += 1;
    }
    await wait(Math.min(POLL_EVERY_MS * 2 ** failures, MAX_PAUSE_MS), undefined, { signal });
  }
}

/** Attempts have the id of their webhook, and not its uid. Throws when there is no such webhook. */
async function idOfWebhook(
  api: Posthorn,
  webhook: string | undefined,
): Promise<string | undefined> {
  return webhook === undefined ? undefined : (await api.webhooks.get(webhook)).id;
}

/** App and event type are filters of the API. A status is not: a message that is listed as pending ends later. */
export function isWanted(event: TailEvent, { webhookId, status }: TailFilter): boolean {
  switch (event.type) {
    case 'message':
    case 'status':
      return status === undefined || event.message.status === status;
    case 'attempt': {
      const { delivery } = event;
      const isOfWebhook = webhookId === undefined || delivery.webhookId === webhookId;
      return isOfWebhook && (status === undefined || delivery.status === status);
    }
    case 'gap':
      return true;
  }
}

/** The times of messages are those of the API. */
async function clockOfApi(api: Posthorn): Promise<number> {
  const { response } = await api.me().withResponse();
  const dateMs = Date.parse(response.headers.get('date') ?? '');
  return Number.isNaN(dateMs) ? Date.now() : dateMs;
}

function sourceOf(api: Posthorn, { appId, webhookId, eventType }: TailFilter): TailSource {
  const filters = {
    ...(appId !== undefined && { appId }),
    ...(webhookId !== undefined && { webhookId }),
    ...(eventType !== undefined && { eventType }),
  };
  return {
    list: (since) => api.messages.list({ ...filters, since, limit: 100 }),
    get: (messageId) => orIfGone(api.messages.get(messageId), null),
    deliveries: (messageId) =>
      orIfGone(
        api.messages
          .listDeliveries(messageId, { limit: MAX_DELIVERIES })
          .then(({ items }) => items),
        [],
      ),
    nowMs: () => performance.now(),
  };
}

async function orIfGone<T, Gone>(reading: PromiseLike<T>, gone: Gone): Promise<T | Gone> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof NotFoundError) return gone;
    throw error;
  }
}

const PASSING = [ConnectionError, TimeoutError, ServerError, RateLimitError];

const isPassing = (error: unknown): error is Error => PASSING.some((each) => error instanceof each);

function print(output: Output, event: TailEvent): void {
  switch (event.type) {
    case 'message':
      output.event('message', event.message, lineOf(output, event.message));
      return;
    case 'attempt': {
      const { messageId, id, webhookId, status, nextAttemptAt } = event.delivery;
      const { attempt } = event;
      const data = { messageId, deliveryId: id, webhookId, status, nextAttemptAt, attempt };
      output.event('attempt', data, lineOfAttempt(output, event));
      return;
    }
    case 'status': {
      const { id, status, deliveries } = event.message;
      output.event('status', { id, status, deliveries }, lineOf(output, event.message));
      return;
    }
    case 'gap':
      output.event('gap', { before: event.before }, null);
      output.note(`Too many messages to print: some before ${event.before} are left out.`);
      return;
  }
}

function lineOf(output: Output, message: MessageStatus & { createdAt?: string }): string {
  const { id, status, eventType, createdAt } = message;
  const { dim, green, red } = output.colours;
  const colour = status === 'delivered' ? green : status === 'pending' ? dim : red;
  const time = clockOf(createdAt === undefined ? Date.now() : Date.parse(createdAt));
  return `${dim(time)}  ${colour(status.padEnd(9))}  ${escapeControls(eventType ?? '-')}  ${dim(escapeControls(id))}`;
}

function lineOfAttempt(
  output: Output,
  { delivery, attempt }: Extract<TailEvent, { type: 'attempt' }>,
): string {
  const { dim, green, red } = output.colours;
  const { number, outcome, statusCode, durationMs, createdAt } = attempt;
  const colour = outcome === 'success' ? green : red;
  const result = statusCode === null ? outcome : String(statusCode);
  const next = delivery.nextAttemptAt;
  const ended = next === null ? delivery.status : `next at ${clockOf(Date.parse(next))}`;
  const took = `attempt ${number} of ${delivery.webhookId}, ${durationMs} ms, ${ended}`;
  return `${dim(clockOf(Date.parse(createdAt)))}  ${colour(result.padEnd(9))}  ${escapeControls(took)}  ${dim(escapeControls(delivery.messageId))}`;
}

interface Pending {
  checkAtMs: number;
  delayMs: number;
}

/** Reads new messages again and again, and passes each one on once. Its memory is bounded. */
export class MessageTail {
  readonly #source: TailSource;
  /** Messages since this time are read. */
  #fromMs: number;
  /** Passed on already, with their times; only of the time that is read again. */
  readonly #seen = new Map<string, number>();
  /** Passed on as pending, oldest first. */
  readonly #pending = new Map<string, Pending>();
  /** The count of attempts of each delivery that were passed on. */
  readonly #known = new Map<string, number>();
  /** Messages with attempts that were not passed on, because a poll reads those of a few messages only. */
  #unread = new Set<string>();

  /** `startMs` is by the clock of the API. */
  constructor(source: TailSource, startMs: number) {
    this.#source = source;
    this.#fromMs = startMs;
  }

  /** Returns what is new since the poll before, oldest first. After a failure, the next poll returns it. */
  async poll(): Promise<TailEvent[]> {
    const checked = await this.#readPending();
    const { found, again, gap } = await this.#readNew();
    const { deliveries, unread } = await this.#readAttempts([...found, ...again, ...checked]);
    // From here on nothing fails, and nothing that is noted as passed on gets lost.
    for (const message of found) {
      this.#seen.set(message.id, Date.parse(message.createdAt));
      if (message.status === 'pending') this.#follow(message.id);
    }
    this.#advance(gap);
    this.#unread = unread;
    return [
      ...(gap === null ? [] : [{ type: 'gap', before: gap } as const]),
      ...found.map((message): TailEvent => ({ type: 'message', message })),
      ...deliveries.flatMap((delivery) => this.#passAttempts(delivery)),
      ...this.#finish([...again, ...checked]),
    ];
  }

  /** `gap` is the time of the newest message that is passed over; null when there is none. */
  async #readNew(): Promise<{
    found: ListedMessage[];
    again: MessageStatus[];
    gap: string | null;
  }> {
    const found: ListedMessage[] = [];
    const again: MessageStatus[] = [];
    let gap: string | null = null;
    let chars = 0;
    for await (const message of this.#source.list(new Date(this.#fromMs).toISOString())) {
      if (this.#seen.has(message.id)) {
        const { id, status, deliveries, eventType } = message;
        // Without payloads: seconds of them may be more than memory has.
        if (this.#pending.has(id)) again.push({ id, status, deliveries, eventType });
      } else if (found.length === MAX_NEW || chars > MAX_NEW_CHARS) {
        gap = message.createdAt;
        break;
      } else {
        found.push(message);
        chars += message.payload?.length ?? 0;
      }
    }
    return { found: found.reverse(), again, gap };
  }

  #advance(gap: string | null): void {
    let newestMs = this.#fromMs;
    for (const createdMs of this.#seen.values()) newestMs = Math.max(newestMs, createdMs);
    const overGapMs = gap === null ? 0 : Date.parse(gap) + 1;
    this.#fromMs = Math.max(this.#fromMs, newestMs - OVERLAP_MS, overGapMs);
    for (const [id, createdMs] of this.#seen) if (createdMs < this.#fromMs) this.#seen.delete(id);
  }

  /** Reads the deliveries of messages with more attempts than were passed on; `unread` are the messages that are left. */
  async #readAttempts(
    messages: readonly MessageStatus[],
  ): Promise<{ deliveries: AttemptedDelivery[]; unread: Set<string> }> {
    const unread = new Set(this.#unread);
    for (const { id, deliveries } of messages) {
      const isAttempted = deliveries
        .slice(0, MAX_DELIVERIES)
        .some((each) => each.attemptCount > (this.#known.get(each.id) ?? 0));
      if (isAttempted) unread.add(id);
    }
    const deliveries: AttemptedDelivery[] = [];
    for (const id of [...unread].slice(0, CHECKS_PER_POLL)) {
      deliveries.push(...(await this.#source.deliveries(id)));
      unread.delete(id);
    }
    return { deliveries, unread: new Set([...unread].slice(-MAX_UNREAD)) };
  }

  #passAttempts(delivery: AttemptedDelivery): TailEvent[] {
    const known = this.#known.get(delivery.id) ?? 0;
    // The newest ones move to the end.
    this.#known.delete(delivery.id);
    this.#known.set(delivery.id, delivery.attemptCount);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    return delivery.attempts
      .filter(({ number }) => number > known)
      .map((attempt): TailEvent => ({ type: 'attempt', delivery, attempt }));
  }

  #follow(id: string): void {
    const delayMs = FIRST_CHECK_MS;
    this.#pending.set(id, { delayMs, checkAtMs: this.#source.nowMs() + delayMs });
    const [oldest] = this.#pending.keys();
    if (this.#pending.size > MAX_PENDING && oldest !== undefined) this.#pending.delete(oldest);
  }

  #finish(messages: readonly MessageStatus[]): TailEvent[] {
    return messages.flatMap((message): TailEvent[] => {
      if (message.status === 'pending' || !this.#pending.delete(message.id)) return [];
      return [{ type: 'status', message }];
    });
  }

  /** Reads messages whose status was pending, each one less and less often. */
  async #readPending(): Promise<MessageStatus[]> {
    const nowMs = this.#source.nowMs();
    const due = [...this.#pending].filter(([, { checkAtMs }]) => checkAtMs <= nowMs);
    const messages: MessageStatus[] = [];
    for (const [id, pending] of due.slice(0, CHECKS_PER_POLL)) {
      const message = await this.#source.get(id);
      if (message) messages.push(message);
      else this.#pending.delete(id);
      pending.delayMs = Math.min(pending.delayMs * 1.5, MAX_CHECK_MS);
      pending.checkAtMs = nowMs + pending.delayMs;
    }
    return messages;
  }
}
