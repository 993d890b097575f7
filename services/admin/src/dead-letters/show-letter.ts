import { isUtf8 } from 'node:buffer';
import { printable } from '../output.ts';
import { webhookIdOf } from './letter-filter.ts';
import { isoTime, type Letter } from './read-letter.ts';

/** A letter in the list: where it is, why, and whose; never what a message says. */
export interface LetterLine {
  id: string;
  atMs: number;
  reason: string;
  detail: string;
  sourceTopic: string;
  sourcePlace: string;
  messageId: string | null;
  webhookId: string | null;
  deliveryId: string | null;
}

const SHOWN_BYTES = 512;

export function lineOf(letter: Letter): LetterLine {
  const { id, atMs, reason, detail, source, content } = letter;
  return {
    id,
    atMs,
    reason,
    detail,
    sourceTopic: source.topic,
    sourcePlace: source.place,
    messageId: content?.messageId ?? null,
    webhookId: webhookIdOf(letter),
    deliveryId: content?.deliveryId ?? null,
  };
}

/** The line as JSON shows it. */
export function describeLine({ atMs, ...line }: LetterLine): object {
  const { id, ...rest } = line;
  return { id, at: isoTime(atMs), ...rest };
}

/** One line of text, whatever a foreign record has put into it. */
export function textOfLine(line: LetterLine): string {
  const { id, atMs, reason, detail, sourceTopic, sourcePlace, messageId, webhookId } = line;
  const ids = [messageId, webhookId].filter((each) => each !== null);
  const parts = [id, isoTime(atMs), reason, `${sourceTopic} ${sourcePlace}`, ...ids, detail];
  return printable(parts.join('  '));
}

/** Everything about one letter. What this version reads is shown by its fields, the rest as it begins. */
export function describeLetter(letter: Letter): object {
  const { id, atMs, reason, detail, source, record, content, cutFromBytes } = letter;
  return {
    id,
    at: isoTime(atMs),
    reason,
    detail,
    source: { topic: source.topic, place: source.place },
    ...(cutFromBytes !== null && { cutFromBytes }),
    key: record.key,
    headers: record.headers,
    bytes: record.value.length,
    ...(content ? { record: describeContent(content) } : { begins: beginningOf(record.value) }),
  };
}

function describeContent(content: NonNullable<Letter['content']>): object {
  const { deliveryId, messageId, webhookId, companyId, appId, createdAtMs, details } = content;
  return {
    deliveryId,
    messageId,
    webhookId,
    companyId,
    appId,
    createdAt: isoTime(createdAtMs),
    ...details,
  };
}

/** As text where it is text, else in hexadecimal digits. */
function beginningOf(value: Buffer): object {
  const start = value.subarray(0, SHOWN_BYTES);
  // The last character may lie across the end of what is shown.
  const cuts = start.length < value.length ? [0, 1, 2, 3] : [0];
  const whole = cuts.map((cut) => start.subarray(0, start.length - cut)).find(isUtf8);
  const text = whole?.toString();
  return text !== undefined && !CONTROLS.test(text) ? { text } : { hex: start.toString('hex') };
}

/** Tabs and line ends are text too. */
const CONTROLS = /[^\P{Cc}\t\n\r]/u;
