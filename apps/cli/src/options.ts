import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { fstatSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import type { FieldRule } from '@posthorn/client/rules';
import { UsageFailure } from './failures.ts';
import { readBytes, readText, withFile } from './files.ts';
import type { Session } from './session.ts';

/* The values of options, and the options that follow from the fields of an object. */

/** Parses a whole number of at least 1. */
export function parseCount(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && Number.isSafeInteger(count)) return count;
  throw new InvalidArgumentError('Expected a whole number of at least 1.');
}

/** Parses a number per second. */
export function parseRate(text: string): number {
  const rate = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && rate > 0) return rate;
  throw new InvalidArgumentError('Expected a number per second, such as 50 or 0.5.');
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses a duration such as `90s` or `1.5h`. */
export function parseDurationMs(text: string): number {
  const ms = durationMsOf(text);
  if (ms !== null) return ms;
  throw new InvalidArgumentError('Expected a number with ms, s, m, h or d, such as 90s.');
}

function durationMsOf(text: string): number | null {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  return unitMs === undefined ? null : Number(number) * unitMs;
}

/** Parses a duration of more than nothing. */
export function parseTimeoutMs(text: string): number {
  const ms = parseDurationMs(text);
  if (ms > 0) return ms;
  throw new InvalidArgumentError('Expected more than 0, such as 90s.');
}

/** Parses a duration of whole seconds. */
export function parseSeconds(text: string): number {
  const seconds = parseDurationMs(text) / 1_000;
  if (Number.isInteger(seconds)) return seconds;
  throw new InvalidArgumentError('Expected whole seconds.');
}

/** Parses a time, or how long ago it was, such as `2h`. */
export function parsePastTime(text: string): string {
  return parseTime(text, -1);
}

/** Parses a time, or how far away it is, such as `30d`. */
export function parseFutureTime(text: string): string {
  return parseTime(text, 1);
}

/** A time that is to be the same when a command is repeated. */
export interface GivenTime {
  at: string;
  /** It was given as a duration, so that each run means another time. */
  isRelative: boolean;
}

/** Parses a time, or how far away it is, such as `2h`. */
export function parseGivenTime(text: string): GivenTime {
  return { at: parseFutureTime(text), isRelative: !isDate(text) };
}

const isDate = (text: string): boolean => /^\d{4}-\d\d-\d\d/.test(text);

function parseTime(text: string, direction: 1 | -1): string {
  const durationMs = durationMsOf(text);
  const time = durationMs === null ? dateOf(text) : new Date(Date.now() + direction * durationMs);
  if (time && !Number.isNaN(time.getTime())) return time.toISOString();
  const relative = direction < 0 ? 'how long ago' : 'how long from now';
  throw new InvalidArgumentError(
    `Expected a time such as 2026-01-31T09:30:00Z, a day such as 2026-01-31 (from 00:00 UTC), or ${relative}, such as 90s, 15m, 2h or 7d.`,
  );
}

const DATE = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/i;

/**
 * Parses a day, which begins at midnight, or a time of a day. Without a zone, both are of UTC: `Date.parse` takes a day
 * for one of UTC, a time for one of this machine, and 30 February for 2 March.
 */
export function parseDate(text: string): Date {
  const date = dateOf(text);
  if (date) return date;
  throw new InvalidArgumentError('Expected a time such as 2026-01-31T09:30:00Z or 2026-01-31.');
}

function dateOf(text: string): Date | null {
  const [, day = '', minute = '00:00', second = ':00', zone = 'Z'] = DATE.exec(text) ?? [];
  const isDay = dayOf(Date.parse(`${day}T00:00:00Z`)) === day;
  const time = new Date(isDay ? `${day}T${minute}${second}${zone.toUpperCase()}` : NaN);
  return Number.isNaN(time.getTime()) ? null : time;
}

const dayOf = (ms: number): string | null =>
  Number.isNaN(ms) ? null : new Date(ms).toISOString().slice(0, 10);

/** Collects the values of an option that is repeated. */
export function parseEach(text: string, before: string[] | undefined): string[] {
  return [...(before ?? []), text];
}

/** Collects the whole numbers of an option that is repeated. */
export function parseCounts(text: string, before: readonly number[] = []): number[] {
  return [...before, parseCount(text)];
}

/** Collects `key=value`. */
export function parsePair(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key !== undefined && value !== undefined) return { ...before, [key]: value };
  throw new InvalidArgumentError('Expected key=value.');
}

/** Parses a JSON object, or that of a file: `@PATH`. */
export function parseJson(text: string): object {
  const isFile = text.startsWith('@');
  const json = isFile ? readText(text.slice(1)) : text;
  const value = parsedObject(json);
  if (value) return value;
  throw new InvalidArgumentError('Expected a JSON object, or @ and a file with one.');
}

function parsedObject(json: string): object | null {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

export interface HeaderValue {
  key: string;
  value: string;
}

/** Collects `name: value`. */
export function parseHeader(text: string, before: readonly HeaderValue[] = []): HeaderValue[] {
  const [, key, value] = /^([^:\s]+)\s*:\s*(.*?)\s*$/s.exec(text) ?? [];
  if (key !== undefined && value !== undefined) return [...before, { key, value }];
  throw new InvalidArgumentError('Expected "name: value".');
}

/** The option that sets a field of an object. */
export interface FieldOption {
  /** As in the help, such as `--event-type <type>`. Without a value, there is `--no-…` beside it. */
  flags: string;
  /** Of the body; the name of the option in camel case when left out. */
  name?: string;
  help: string;
  /** In place of that of the type. */
  parse?: (text: string, before: never) => unknown;
}

/** A field with what the rules of the API say of it. */
export interface Field extends FieldOption {
  choices?: readonly string[] | undefined;
  /** A creation needs it. */
  required?: boolean;
  /** Arguments are seen by other users and stored by shells, so it is read from elsewhere. */
  secret?: boolean;
}

const PARSERS: Partial<Record<FieldRule['type'], NonNullable<Field['parse']>>> = {
  number: parseCount,
  numbers: parseCounts,
  texts: parseEach,
  pairs: parsePair,
  headers: parseHeader,
  json: parseJson,
  time: parseFutureTime,
};

/** Returns the fields of an object whose rules these are. Throws for an option without a field. */
export function fieldsWith(
  rules: Readonly<Record<string, FieldRule>>,
  options: readonly FieldOption[],
): Field[] {
  return options.map((option) => {
    const rule = rules[nameOf(option)];
    if (!rule) throw new Error(`no field of the API belongs to ${option.flags}`);
    const parse = PARSERS[rule.type];
    return {
      ...(parse && { parse }),
      ...option,
      choices: rule.choices ?? rule.entry?.choices,
      required: rule.isRequired === true && rule.authMethod === undefined,
      secret: rule.type === 'secret',
    };
  });
}

/** The options of a command as commander parsed them. */
export type Options = Readonly<Record<string, unknown>>;

/** A command whose options follow from a table, so that its type does not have them. */
export interface WithOptions {
  addOption(option: Option): unknown;
}

/** Adds the options of the fields, and those for what has no option of its own. */
export function addFields(command: WithOptions, fields: readonly Field[]): void {
  for (const field of fields) {
    if (field.secret) addSecret(command, field);
    else addField(command, field);
  }
  command.addOption(
    new Option('--data <json>', 'all fields as a JSON object; options count before it'),
  );
  command.addOption(
    new Option('--file <path>', 'the same from a JSON or YAML file, or - for standard input'),
  );
}

const fieldNames = new WeakMap<Option, string>();

/** Returns the name of the field that an option sets; undefined when it sets none. */
export function fieldOf(option: Option): string | undefined {
  return fieldNames.get(option);
}

function addField(command: WithOptions, field: Field): void {
  const { flags, help, parse, choices } = field;
  const option = new Option(flags, help);
  fieldNames.set(option, nameOf(field));
  if (choices) option.choices(choices);
  const parseChoice = option.parseArg as Parser | undefined;
  if (parse) {
    // In place of that of the choices.
    option.argParser((text: string, before: unknown) => {
      parseChoice?.(text, undefined);
      return (parse as Parser)(text, before);
    });
  }
  command.addOption(option);
  if (option.isBoolean()) command.addOption(new Option(flags.replace(/^--/, '--no-')).hideHelp());
}

type Parser = (text: string, before: unknown) => unknown;

function addSecret(command: WithOptions, { flags, help }: Field): void {
  command.addOption(new Option(`${flags}-env <variable>`, `${help}, from the environment`));
  command.addOption(new Option(`${flags}-stdin`, `${help}, from standard input`));
  command.addOption(refuseArgument(flags));
}

/**
 * Returns the option of a secret as an argument, which is there to be refused: commander would show its value in the
 * error about an unknown option.
 */
export function refuseArgument(flags: string): Option {
  const refuse = (): never => {
    throw new UsageFailure(
      `Other users see arguments, and shells store them: use ${flags}-stdin or ${flags}-env VARIABLE in place of ${flags}`,
    );
  };
  return new Option(`${flags} <value>`).argParser(refuse).hideHelp();
}

/** Adds `--null`, which takes values away. */
export function addNull(command: WithOptions): void {
  const help = 'clear this field (repeatable)';
  command.addOption(new Option('--null <field>', help).argParser(parseEach));
}

/**
 * Returns the body that the options describe: what `--file` has, above it `--data`, then each option, and null for each
 * `--null`.
 */
export async function readBody(
  session: Session,
  fields: readonly Field[],
  options: Options,
): Promise<Record<string, unknown>> {
  const { data, file, null: nulls = [] } = options as ReadOptions;
  const secrets = fields.filter(({ secret }) => secret);
  refuseSecondReader(secrets, options);
  const body = {
    ...(file === undefined ? {} : await readObject(session, file)),
    ...(data === undefined ? {} : parseData(data, secrets)),
  };
  for (const field of fields) {
    const value = field.secret
      ? await readSecret(session, field.flags, options)
      : options[attributeOf(field)];
    if (value !== undefined) body[nameOf(field)] = value;
  }
  for (const name of nulls) body[fieldOfNull(fields, name)] = null;
  return body;
}

interface ReadOptions {
  data?: string;
  file?: string;
  null?: readonly string[];
}

/** Throws when a creation lacks a field that it needs. */
export function requireFields(fields: readonly Field[], body: Options): void {
  const missing = fields.filter((field) => field.required && (body[nameOf(field)] ?? '') === '');
  if (missing.length === 0) return;
  throw new UsageFailure(`Set ${missing.map(({ flags }) => flags).join(' and ')}`);
}

/** Throws when an update has nothing to change. */
export function requireChange([first]: readonly FieldOption[], body: Options): void {
  if (Object.keys(body).length > 0) return;
  throw new UsageFailure(`Set what is to change, such as ${first?.flags ?? '--data'}`);
}

const attributeOf = ({ flags }: FieldOption): string => new Option(flags).attributeName();
const nameOf = (field: FieldOption): string => field.name ?? attributeOf(field);

/** `--null` takes the name of the field, or of its option. */
function fieldOfNull(fields: readonly Field[], name: string): string {
  const found = fields.find(({ flags }) => new Option(flags).name() === name);
  return found ? nameOf(found) : name;
}

function refuseSecondReader(secrets: readonly Field[], options: Options): void {
  const ofSecrets = secrets.filter((field) => options[`${attributeOf(field)}Stdin`] === true);
  const readers = [
    ...ofSecrets.map(({ flags }) => `${flags}-stdin`),
    ...(options.file === '-' ? ['--file -'] : []),
  ];
  if (readers.length < 2) return;
  throw new UsageFailure(`${readers.join(' and ')}: only one of them can read standard input`);
}

/** Returns the secret of `--NAME-env` or `--NAME-stdin`; undefined when neither is there. */
export async function readSecret(
  session: Session,
  flags: string,
  options: Options,
): Promise<string | undefined> {
  const attribute = new Option(flags).attributeName();
  if (options[`${attribute}Stdin`] === true) return (await session.readStdin()).trim();
  const variable = options[`${attribute}Env`] as string | undefined;
  return variable === undefined ? undefined : readVariable(session, `${flags}-env`, variable);
}

/** Reads the variable of an option. Throws when it is not set. */
export function readVariable({ world }: Session, option: string, name: string): string {
  const value = world.env[name];
  if (value) return value;
  throw new UsageFailure(`${option}: the environment has no variable ${name}`);
}

function parseData(text: string, secrets: readonly Field[]): Record<string, unknown> {
  const data = objectOf('--data', () => JSON.parse(text) as unknown, 'JSON object');
  const given = secrets.filter((field) => typeof data[nameOf(field)] === 'string');
  if (given.length === 0) return data;
  const names = given.map(nameOf).join(', ');
  throw new UsageFailure(
    `Other users see arguments, and shells store them: put ${names} into a file for --file, or use ${given[0]?.flags ?? ''}-stdin`,
  );
}

/** Reads a JSON or YAML object from a file, or from standard input. */
async function readObject(session: Session, path: string): Promise<Record<string, unknown>> {
  const text = path === '-' ? await session.readStdin() : textOfFile(session, '--file', path);
  if (/^\s*\{/.test(text)) return objectOf(path, () => JSON.parse(text) as unknown);
  const { parse } = await import('yaml');
  return objectOf(path, () => parse(text) as unknown);
}

/** Reads the text file of an option. Throws a UsageFailure when it cannot. */
export const textOfFile = ({ world }: Session, option: string, path: string): string =>
  readText(resolve(world.folder, path), `${option} ${path}`);

export const bytesOfFile = ({ world }: Session, option: string, path: string): Buffer =>
  readBytes(resolve(world.folder, path), `${option} ${path}`);

/** Opens the file of an option, and returns its descriptor. */
export function openFile({ world }: Session, option: string, path: string): number {
  return withFile(`${option} ${path}`, () => {
    const fd = openSync(resolve(world.folder, path), 'r');
    // A folder can be opened, and not read.
    if (fstatSync(fd).isDirectory()) throw Object.assign(new Error(path), { code: 'EISDIR' });
    return fd;
  });
}

/** Throws a UsageFailure with the place of what is wrong, and without the text, which may have secrets. */
export function requireJsonObject(source: string, text: string): void {
  objectOf(source, () => JSON.parse(text) as unknown, 'JSON object');
}

function objectOf(
  source: string,
  parse: () => unknown,
  expected = 'object in JSON or YAML',
): Record<string, unknown> {
  let value: unknown;
  let place = '';
  try {
    value = parse();
  } catch (error) {
    place = placeOf(error);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  const article = /^[aeiou]/.test(expected) ? 'an' : 'a';
  throw new UsageFailure(`${source} is not ${article} ${expected}${place}`);
}

/** The message of a parser shows a part of the text, and some have the place. */
function placeOf(error: unknown): string {
  const { message, linePos } = error as {
    message: string;
    linePos?: { line: number; col: number }[];
  };
  const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? [];
  const [first] = linePos ?? [];
  if (first) return ` (line ${first.line}, column ${first.col})`;
  return line === undefined ? '' : ` (line ${line}, column ${String(column)})`;
}
