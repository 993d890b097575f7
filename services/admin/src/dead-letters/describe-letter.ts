import { isUtf8 } from 'node:buffer';
import { escapeControls } from '../output.ts';
import { webhookIdOf } from './letter-filter.ts';
import { isoTime, type Letter } from './read-letter.ts';

/** A letter as the list shows it: its place, its reason and its ids, never a payload. */
export interface LetterSummary {
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

export function summarize(letter: Letter): LetterSummary {
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

/** Returns the entry of the list in JSON output. */
export function summaryToJson({ atMs, ...summary }: LetterSummary): object {
  const { id, ...rest } = summary;
  return { id, at: isoTime(atMs), ...rest };
}

/** Returns one line of text, with the control characters of foreign records escaped. */
export function summaryToText(summary: LetterSummary): string {
  const { id, atMs, reason, detail, sourceTopic, sourcePlace, messageId, webhookId } = summary;
  const ids = [messageId, webhookId].filter((each) => each !== null);
  const parts = [id, isoTime(atMs), reason, `${sourceTopic} ${sourcePlace}`, ...ids, detail];
  return escapeControls(parts.join('  '));
}

/** Describes a letter with its record: by its fields if this version can read them, else by its first bytes. */
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

/** Returns the first bytes as text if they are text, else in hexadecimal digits. */
function beginningOf(value: Buffer): object {
  const start = value.subarray(0, SHOWN_BYTES);
  // The cut may split the last character, of up to 4 bytes.
  const cuts = start.length < value.length ? [0, 1, 2, 3] : [0];
  const whole = cuts.map((cut) => start.subarray(0, start.length - cut)).find(isUtf8);
  const text = whole?.toString();
  return text !== undefined && !CONTROLS.test(text) ? { text } : { hex: start.toString('hex') };
}

/** Control characters except tabs and line ends. */
const CONTROLS = /[^\P{Cc}\t\n\r]/u;
