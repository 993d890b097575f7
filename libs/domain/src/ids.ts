import { hash } from 'node:crypto';
import { fromBase32, toBase32 } from './base32.ts';

/** Prefix of every kind of id; the rest is a lower-case ULID of 26 characters. */
export type IdPrefix =
  'comp' | 'proj' | 'app' | 'wh' | 'msg' | 'dlv' | 'att' | 'key' | 'rsnd' | 'rmv' | 'gw';

const TIME_CHARS = 10;
const HALF_BITS = 2 ** 40;
const HALF_CHARS = 8;
const HALF_HEX = 10;

export interface IdSources {
  nowMs: () => number;
  /** Returns `size` random bytes. */
  randomBytes: (size: number) => Buffer;
}

/**
 * Makes ids that grow in the order in which they are made, also within one millisecond and when the
 * clock steps back: the publisher's watermark rests on it (a later id that sorts lower would be
 * taken for published). Layout: 48 bits of time, 80 random bits (ULID specification).
 */
export function createIdFactory({ nowMs, randomBytes }: IdSources): (prefix: IdPrefix) => string {
  let lastMs = -1;
  let high = 0;
  let low = 0;

  function startMillisecond(ms: number): void {
    const bytes = randomBytes(10);
    lastMs = ms;
    // The top bit stays clear, so that 2^79 increments fit before the random part could overflow.
    high = bytes.readUIntBE(0, 5) % (HALF_BITS / 2);
    low = bytes.readUIntBE(5, 5);
  }

  function increment(): void {
    low += 1;
    if (low < HALF_BITS) return;
    low = 0;
    high += 1;
  }

  return (prefix) => {
    const ms = nowMs();
    if (ms > lastMs) startMillisecond(ms);
    else increment();
    const random = toBase32(high, HALF_CHARS) + toBase32(low, HALF_CHARS);
    return `${prefix}_${toBase32(lastMs, TIME_CHARS)}${random}`;
  };
}

/**
 * The delivery of one message to one webhook. Derived, so that a repeated step finds its own work,
 * and led by the message's time, so that inserts stay at the right edge of the index.
 */
export function deliveryIdOf(messageId: string, webhookId: string): string {
  return derivedId('dlv', messageId, `${messageId}/${webhookId}`);
}

/** The attempt with this number (1 is the first) of a delivery. */
export function attemptIdOf(deliveryId: string, attemptNumber: number): string {
  return derivedId('att', deliveryId, `${deliveryId}/${attemptNumber}`);
}

/** Any id of the given kind, as a client may write it. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return idPattern(prefix).test(text);
}

/** Matches every id of the given kind, and nothing else (ULID specification, in lower case). */
export function idPattern(prefix: IdPrefix): RegExp {
  return new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`);
}

function derivedId(prefix: IdPrefix, parentId: string, identity: string): string {
  // As text: a digest in a buffer of its own takes 1.6 µs instead of 0.2.
  const digest = hash('sha256', identity, 'hex');
  const random = halfOf(digest, 0) + halfOf(digest, HALF_HEX);
  return `${prefix}_${timePartOf(parentId)}${random}`;
}

/** Forty bits of a digest, spelled as half of an id's random part. */
function halfOf(digest: string, start: number): string {
  return toBase32(Number.parseInt(digest.slice(start, start + HALF_HEX), 16), HALF_CHARS);
}

/** The ten characters of an id that spell its millisecond. */
export function timePartOf(id: string): string {
  const start = id.indexOf('_') + 1;
  return id.slice(start, start + TIME_CHARS);
}

/** The millisecond, since 1970, that an id spells. */
export function timeMsOf(id: string): number {
  return fromBase32(timePartOf(id));
}

/**
 * Sorts before every id of this kind that was made at or after `ms`, and after all earlier ones.
 * Nothing was made before 1970.
 */
export function firstIdAt(prefix: IdPrefix, ms: number): string {
  return `${prefix}_${toBase32(Math.max(0, ms), TIME_CHARS)}`;
}
