import type { CreatedMessage, Message } from '@posthorn/client';
import {
  CheckFailure,
  CommandFailure,
  describeFailure,
  Interrupted,
  UsageFailure,
} from '../failures.ts';
import type { Output } from '../output.ts';
import { RefusedItem, type Sent } from './send-all.ts';
import type { Accepted } from './send-batch.ts';

/** That a message was accepted or, with `--wait`, the message as it ended. */
export type SentMessage = Accepted | Message;

export interface ReportOptions {
  /** What a number stands for: a line of the input, or a message of `--count`. */
  unit: 'line' | 'message';
  /** Null for an input whose length is not known. */
  total: number | null;
  /** Whether messages must end delivered. */
  isWaiting: boolean;
}

const PROGRESS_EVERY_MS = 100;
const BAR_WIDTH = 24;

/** Counts what was sent and what failed. It prints failures at once, progress on a terminal, and a summary at the end. */
export class SendReport {
  readonly #output: Output;
  readonly #options: ReportOptions;
  readonly #now: () => number;
  readonly #startedMs: number;
  #shownMs = -Infinity;
  #accepted = 0;
  #replayed = 0;
  #refused = 0;
  #undelivered = 0;

  constructor(output: Output, options: ReportOptions, now = () => performance.now()) {
    this.#output = output;
    this.#options = options;
    this.#now = now;
    this.#startedMs = now();
  }

  /** Called in the order of the input. */
  add(sent: Sent<SentMessage>): void {
    if ('error' in sent) this.#addFailure(sent.numbers, sent.error);
    else this.#addMessage(sent.number, sent.result);
    this.#showProgress();
  }

  #addMessage(number: number, message: SentMessage): void {
    this.#accepted += 1;
    if (message.status === 'replayed') this.#replayed += 1;
    const { unit, isWaiting } = this.#options;
    const isAccepted = 'messageId' in message;
    const { status } = message;
    const sent = isAccepted
      ? { messageId: message.messageId, status, deliveries: message.deliveries }
      : { messageId: message.id, status, deliveries: message.deliveries.length, message };
    this.#output.event('sent', { [unit]: number, ...sent }, null);
    if (!isWaiting || (!isAccepted && message.delivered)) return;
    this.#undelivered += 1;
    this.#clearProgress();
    const state = isAccepted ? `${message.messageId} is pending` : stateOf(message);
    this.#output.error([`${unit} ${number}: ${state}`]);
  }

  #addFailure(numbers: readonly number[], error: unknown): void {
    // What was in flight at the interruption is counted in the summary alone.
    if (error instanceof Interrupted) return;
    this.#refused += numbers.length;
    const { unit } = this.#options;
    const fields = fieldsOf(error);
    for (const number of numbers) {
      this.#output.event('failed', { [unit]: number, ...fields }, null);
    }
    this.#clearProgress();
    const [first = 0] = numbers;
    const which =
      numbers.length === 1 ? `${unit} ${first}` : `${unit}s ${first} to ${numbers.at(-1) ?? first}`;
    this.#output.error([`${which}: ${textOf(error)}`]);
  }

  /** Prints the summary, and throws when a message failed. */
  finish({ lastNumber, fatal }: { lastNumber: number; fatal: unknown }): void {
    this.#summarize();
    const { unit } = this.#options;
    if (fatal !== null) {
      const { exitCode } = describeFailure(fatal);
      const noun = unit === 'line' ? 'No line' : 'No message';
      throw new CommandFailure(
        `Stopped at ${unit} ${lastNumber}, since all others would fail too. ${noun} after it was sent`,
        exitCode,
      );
    }
    if (this.#refused > 0) throw new CommandFailure(`${this.#refused} were not accepted`);
    if (this.#undelivered > 0) throw new CheckFailure(`${this.#undelivered} were not delivered`);
    if (this.#accepted === 0) throw new UsageFailure('The input has no messages');
  }

  /** Prints the summary of a run that was interrupted. */
  interrupt(): void {
    this.#summarize();
  }

  #summarize(): void {
    this.#clearProgress();
    const seconds = (this.#now() - this.#startedMs) / 1_000;
    const rate = Math.round(this.#accepted / Math.max(seconds, 0.001));
    const failed = this.#refused === 0 ? '' : `, ${this.#refused} not accepted`;
    const before = this.#replayed === 0 ? '' : ` (${this.#replayed} of them before)`;
    const text = `${this.#accepted} sent${before}${failed}, in ${seconds.toFixed(1)} s (${rate}/s)`;
    // The results are on standard output, each as a line of JSON.
    if (this.#output.isJson) this.#output.note(text);
    else this.#output.done(text);
  }

  #showProgress(): void {
    const nowMs = this.#now();
    if (nowMs - this.#shownMs < PROGRESS_EVERY_MS) return;
    this.#shownMs = nowMs;
    const { total } = this.#options;
    const done = this.#accepted + this.#refused;
    const failed = this.#refused === 0 ? '' : `, ${this.#refused} not accepted`;
    const bar = total === null ? '' : `${barOf(done / total)} `;
    const of = total === null ? '' : ` of ${total}`;
    this.#output.progress(`${bar}${this.#accepted}${of} sent${failed}`);
  }

  #clearProgress(): void {
    this.#shownMs = -Infinity;
    this.#output.progress('');
  }
}

function barOf(share: number): string {
  const filled = Math.round(Math.min(share, 1) * BAR_WIDTH);
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`;
}

function textOf(error: unknown): string {
  if (error instanceof RefusedItem)
    return `${error.message}${error.code ? ` (${error.code})` : ''}`;
  const [first = ''] = describeFailure(error).lines;
  return first.replace(/^error: /, '');
}

/** The failure for programs. */
function fieldsOf(error: unknown): object {
  const { status, code, message, requestId, errors } = error as Record<string, unknown>;
  return { status, code, message, requestId, errors };
}

/** What became of a message, for people. The API has `delivered` for one without a delivery that could fail. */
export function stateOf({ id, status, deliveries }: StatedMessage): string {
  return deliveries.length === 0 ? `${id} goes to no webhook` : `${id} is ${status}`;
}

type StatedMessage = Pick<CreatedMessage, 'id' | 'deliveries'> & { status: string };
