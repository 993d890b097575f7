import type { Command } from '@commander-js/extra-typings';
import {
  ConnectionError,
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

type MessageStatus = Pick<Message, 'id' | 'status' | 'deliveries' | 'eventType'>;

export type TailEvent =
  | { type: 'message'; message: ListedMessage }
  | { type: 'status'; message: MessageStatus }
  /** More messages came than one poll keeps: those before this time were passed over. */
  | { type: 'gap'; before: string };

export interface TailSource {
  /** Messages of this time or later, newest first. */
  list: (from: string) => AsyncIterable<ListedMessage>;
  /** Null when it is gone. */
  get: (messageId: string) => Promise<MessageStatus | null>;
  nowMs: () => number;
}

/** `message tail`. */
export function addTail(message: Command, session: Session): void {
  message
    .command('tail')
    .description('print new messages, and their final status, until Ctrl-C')
    .option('--app <id>', 'only messages of this app')
    .action(({ app }) => session.watch(() => tail(session, session.appOf(app))));
}

async function tail(session: Session, appId: string | undefined): Promise<void> {
  const { api, output } = session;
  const { signal } = session.world;
  // Without this app there would be nothing to print for ever: the list of its messages is empty.
  if (appId !== undefined) await api.apps.get(appId);
  const messages = new MessageTail(sourceOf(api, appId), await clockOfApi(api));
  if (output.isJson) output.event({ type: 'ready', appId: appId ?? null }, '');
  output.note(`ready: new messages of ${appId ?? 'all apps'}. Ctrl-C ends it.`);
  let failures = 0;
  for (;;) {
    try {
      for (const event of await messages.poll()) print(output, event);
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

/** The times of messages are those of the API. */
async function clockOfApi(api: Posthorn): Promise<number> {
  const { response } = await api.me().withResponse();
  const dateMs = Date.parse(response.headers.get('date') ?? '');
  return Number.isNaN(dateMs) ? Date.now() : dateMs;
}

function sourceOf(api: Posthorn, appId: string | undefined): TailSource {
  return {
    list: (from) => api.messages.list({ ...(appId !== undefined && { appId }), from, limit: 100 }),
    get: async (messageId) => {
      try {
        return await api.messages.get(messageId);
      } catch (error) {
        if (error instanceof NotFoundError) return null;
        throw error;
      }
    },
    nowMs: () => performance.now(),
  };
}

const PASSING = [ConnectionError, TimeoutError, ServerError, RateLimitError];

const isPassing = (error: unknown): error is Error => PASSING.some((each) => error instanceof each);

function print(output: Output, event: TailEvent): void {
  switch (event.type) {
    case 'message':
      output.event({ type: 'message', data: event.message }, lineOf(output, event.message));
      return;
    case 'status': {
      const { id, status, deliveries } = event.message;
      output.event({ type: 'status', id, status, deliveries }, lineOf(output, event.message));
      return;
    }
    case 'gap':
      if (output.isJson) output.event(event, '');
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

  /** `startMs` is by the clock of the API. */
  constructor(source: TailSource, startMs: number) {
    this.#source = source;
    this.#fromMs = startMs;
  }

  /** Returns what is new since the poll before, oldest first. After a failure, the next poll returns it. */
  async poll(): Promise<TailEvent[]> {
    const checked = await this.#readPending();
    const { found, again, gap } = await this.#readNew();
    // From here on nothing fails, and nothing that is noted as passed on gets lost.
    for (const message of found) {
      this.#seen.set(message.id, Date.parse(message.createdAt));
      if (message.status === 'pending') this.#follow(message.id);
    }
    this.#advance(gap);
    return [
      ...(gap === null ? [] : [{ type: 'gap', before: gap } as const]),
      ...found.map((message): TailEvent => ({ type: 'message', message })),
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
