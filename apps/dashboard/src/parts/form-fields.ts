import { WEBHOOK_RULES } from '@posthorn/client/rules';
import type { ChangeEvent } from 'react';
import type { Problem } from '../api/failure.ts';

export type ErrorOf = (field: string) => string | undefined;

/** Returns whether one of these fields of a form says what is wrong. Fields are named as the API names their paths. */
export function isAtOneOf(fields: readonly string[]): (problem: Problem) => boolean {
  return ({ path }) => fields.some((field) => isOf(field, path));
}

/** Returns what is wrong with a field, entry by entry where it holds several. */
export function errorIn(problems: readonly Problem[], field: string): string | undefined {
  const own = problems.filter(({ path }) => isOf(field, path));
  return own.length === 0 ? undefined : own.map((each) => textOf(each, field)).join('; ');
}

const isOf = (field: string, path: string): boolean =>
  path === field || path.startsWith(`${field}.`);

/** `customHeaders.0.value` is about the first entry. */
function textOf({ path, message }: Problem, field: string): string {
  const [index] = path.slice(field.length + 1).split('.');
  return /^\d+$/.test(index ?? '') ? `entry ${Number(index) + 1} ${message}` : message;
}

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** Returns the handler of a field that passes on what it holds. */
export function valueTo(set: (value: string) => void) {
  return ({ currentTarget }: ChangeEvent<Field>): void => {
    set(currentTarget.value);
  };
}

/** Returns the entries of a field that has one on each line. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** What clients set on projects, apps and webhooks for themselves (docs/contract.md C5.12, C5.14). */
export interface OwnFields {
  uid: string | null;
  metadata: Readonly<Record<string, string>>;
}

export const { uid: UID_RULE, metadata: METADATA_RULE } = WEBHOOK_RULES;

export const NO_OWN_FIELDS: OwnFields = {
  uid: UID_RULE.default,
  metadata: METADATA_RULE.default,
};

/** A key with its value, as they were typed. */
export interface Entry {
  key: string;
  value: string;
}

/** Returns what a form has of the own fields. A form without one of them leaves it as it is. */
export function readOwnFields(form: FormData): Partial<OwnFields> {
  const uid = form.get('uid');
  const metadata = form.get('metadata');
  return {
    ...(typeof uid === 'string' && { uid: uid.trim() || null }),
    ...(typeof metadata === 'string' && { metadata: metadataOf(JSON.parse(metadata) as Entry[]) }),
  };
}

/** The same, without what is as it was. */
export function changedOwnFields(form: FormData, stored: OwnFields): Partial<OwnFields> {
  const { uid, metadata } = readOwnFields(form);
  return {
    ...(uid !== undefined && uid !== stored.uid && { uid }),
    ...(metadata !== undefined && !isSame(metadata, stored.metadata) && { metadata }),
  };
}

/** Returns what is wrong with an entry beside the others; null when nothing is, or nothing was typed. */
export function entryProblem(entry: Entry, entries: readonly Entry[]): string | null {
  if (entry.key === '') return entry.value === '' ? null : 'Give the value a key';
  const isTwice = entries.some((each) => each !== entry && each.key === entry.key);
  return isTwice ? 'Another row has this key' : null;
}

const metadataOf = (entries: readonly Entry[]): Record<string, string> =>
  Object.fromEntries(entries.filter(({ key }) => key !== '').map(({ key, value }) => [key, value]));

function isSame(one: OwnFields['metadata'], other: OwnFields['metadata']): boolean {
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key]);
}

/** Returns what is wrong with a text that is to be a JSON object; null when nothing is, and for no text. */
export function problemOfJson(text: string): string | null {
  if (text.trim() === '') return null;
  const value = parsedJson(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? null : 'This is no JSON object';
}

/** Returns undefined for a text that is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
