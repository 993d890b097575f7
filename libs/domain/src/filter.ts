/*
 * The filter of a webhook: conditions on a message, as Outpost and Hookdeck write them (docs/filters.md). One rule holds
 * at every level: a value meets a condition, and all keys of a condition must hold.
 */

export type Json =
  string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

export type JsonObject = Readonly<Record<string, Json>>;

/** A filter whose grammar was checked (parse-filter.ts). */
export type Filter = JsonObject & { readonly [CHECKED]: true };
declare const CHECKED: unique symbol;

/** The parts of a message that conditions are about. */
export interface Facts {
  readonly payload: Json;
  readonly tags: readonly string[];
  /** Absent from a message without one. */
  readonly eventType?: string;
}

/** An element of a list, a comparison and a level are one step each; one takes about 30 ns. */
const MAX_STEPS = 10_000;
/**
 * A text of 262,144 characters is searched for one of 4,000 in up to 156 ms, 0.15 ns for each pair of characters. With
 * these pairs for a step, all steps of a filter take 6 ms at most.
 */
const PAIRS_OF_A_STEP = 4_096;

/** A message whose payload is the text that was sent. */
interface FilteredMessage {
  payload: string;
  eventType: string | null;
  tags?: readonly string[] | undefined;
}

/** Returns what conditions are about. The payload is parsed once, when the first of them is about it; then `onParsed` is called. */
export function factsOf(
  { payload, eventType, tags = [] }: FilteredMessage,
  onParsed: () => void = () => undefined,
): Facts {
  let parsed: Json | undefined;
  return {
    tags,
    ...(eventType !== null && { eventType }),
    get payload() {
      if (parsed === undefined) {
        parsed = JSON.parse(payload) as Json;
        onParsed();
      }
      return parsed;
    },
  };
}

export interface Verdict {
  /** Also true when it is undecided: a filter is no access rule, and no message may vanish. */
  matches: boolean;
  /** The filter needs more steps than one message may cost. */
  isUndecided: boolean;
  steps: number;
}

/** Returns whether the message passes the filter. Never throws. */
export function matches(filter: Filter, facts: Facts): Verdict {
  const meter = { steps: 0 };
  const isMet = meets(facts as unknown as JsonObject, filter, meter);
  const isUndecided = isOver(meter);
  return { matches: isMet || isUndecided, isUndecided, steps: meter.steps };
}

/** Returns the path of the first condition that failed, such as `payload.amount.$gte`; null when the message passes. */
export function failureOf(filter: Filter, facts: Facts): string | null {
  if (matches(filter, facts).matches) return null;
  return firstFailure(facts as unknown as JsonObject, filter, []).join('.');
}

interface Meter {
  steps: number;
}

const isOver = ({ steps }: Meter): boolean => steps > MAX_STEPS;

type Value = Json | undefined;

export const isList = (value: Value): value is readonly Json[] => Array.isArray(value);
export const isObject = (value: Value): value is JsonObject =>
  typeof value === 'object' && value !== null && !isList(value);
const isOperator = (key: string): boolean => key.startsWith('$');
const own = (value: JsonObject, key: string): Value =>
  Object.hasOwn(value, key) ? value[key] : undefined;

/** `value` is undefined for a missing key. The result has no meaning once the meter is over. */
function meets(value: Value, condition: Json, meter: Meter): boolean {
  meter.steps += 1;
  if (isList(condition)) {
    return isList(value) && condition.every((each) => hasElement(value, each, meter));
  }
  if (isObject(condition)) return meetsKeys(value, condition, meter);
  return isList(value) ? hasElement(value, condition, meter) : value === condition;
}

function hasElement(list: readonly Json[], condition: Json, meter: Meter): boolean {
  return hasSome(list, meter, (element) => meets(element, condition, meter));
}

function hasSome<Entry>(
  list: readonly Entry[],
  meter: Meter,
  isWanted: (entry: Entry) => boolean,
): boolean {
  for (const entry of list) {
    if (isOver(meter)) return false;
    if (isWanted(entry)) return true;
  }
  return false;
}

/** Operators are about the value itself, also when it is a list; the other keys about one and the same element of it. */
function meetsKeys(value: Value, condition: JsonObject, meter: Meter): boolean {
  const keys = Object.keys(condition);
  if (keys.length === 0) return typeof value === 'object' && value !== null;
  const names = keys.filter((key) => !isOperator(key));
  const isMet = (key: string): boolean => operate(key, value, condition[key] as Json, meter);
  if (!keys.every((key) => !isOperator(key) || isMet(key))) return false;
  return names.length === 0 || hasMembers(value, condition, names, meter);
}

function hasMembers(
  value: Value,
  condition: JsonObject,
  names: readonly string[],
  meter: Meter,
): boolean {
  meter.steps += 1;
  if (isList(value)) {
    return hasSome(value, meter, (element) => hasMembers(element, condition, names, meter));
  }
  return (
    isObject(value) && names.every((key) => meets(own(value, key), condition[key] as Json, meter))
  );
}

type Operator = (value: Value, operand: Json, meter: Meter) => boolean;

const isInOrder =
  (isRight: (value: string | number, operand: string | number) => boolean): Operator =>
  (value, operand) => {
    if (typeof value === 'number' && typeof operand === 'number') return isRight(value, operand);
    return typeof value === 'string' && typeof operand === 'string' && isRight(value, operand);
  };

const hasText =
  (isThere: (value: string, text: string) => boolean): Operator =>
  (value, operand, meter) => {
    const texts = (isList(operand) ? operand : [operand]) as readonly string[];
    meter.steps += texts.length;
    return typeof value === 'string' && texts.some((text) => isThere(value, text));
  };

/** What cannot be compared does not match, so a missing key meets `$exist: false` only. */
const OPERATORS: Readonly<Record<string, Operator>> = {
  $eq: (value, operand, meter) => value !== undefined && isEqual(value, operand, meter),
  $neq: (value, operand, meter) => value !== undefined && !isEqual(value, operand, meter),
  $gt: isInOrder((value, operand) => value > operand),
  $gte: isInOrder((value, operand) => value >= operand),
  $lt: isInOrder((value, operand) => value < operand),
  $lte: isInOrder((value, operand) => value <= operand),
  $in: (value, operand, meter) => isIn(value, operand, meter) === true,
  $nin: (value, operand, meter) => isIn(value, operand, meter) === false,
  $startsWith: hasText((value, text) => value.startsWith(text)),
  $endsWith: hasText((value, text) => value.endsWith(text)),
  $exist: (value, operand) => (value !== undefined) === operand,
  $and: (value, operand, meter) =>
    (operand as readonly Json[]).every((each) => meets(value, each, meter)),
  $or: (value, operand, meter) =>
    (operand as readonly Json[]).some((each) => meets(value, each, meter)),
  $not: (value, operand, meter) => !meets(value, operand, meter),
};

function operate(name: string, value: Value, operand: Json, meter: Meter): boolean {
  meter.steps += 1;
  return OPERATORS[name]?.(value, operand, meter) ?? false;
}

function isEqual(value: Json, other: Json, meter: Meter): boolean {
  meter.steps += 1;
  if (isList(value)) {
    return (
      isList(other) &&
      value.length === other.length &&
      other.every((each, index) => isEqual(value[index] as Json, each, meter))
    );
  }
  if (!isObject(value) || !isObject(other)) return value === other;
  const keys = Object.keys(other);
  return (
    keys.length === Object.keys(value).length &&
    keys.every((key) => {
      const found = own(value, key);
      return found !== undefined && isEqual(found, other[key] as Json, meter);
    })
  );
}

/** Null for values that cannot be compared. */
function isIn(value: Value, operand: Json, meter: Meter): boolean | null {
  if (isList(operand)) {
    meter.steps += operand.length;
    return value === undefined || (typeof value === 'object' && value !== null)
      ? null
      : operand.includes(value);
  }
  if (isList(value)) {
    return hasSome(value, meter, (element) => {
      meter.steps += 1;
      return element === operand;
    });
  }
  if (typeof value !== 'string' || typeof operand !== 'string') return null;
  meter.steps += Math.floor((value.length * operand.length) / PAIRS_OF_A_STEP);
  // A search that costs more than all steps is not made.
  return !isOver(meter) && value.includes(operand);
}

/** The value does not meet the condition. */
function firstFailure(value: Value, condition: Json, path: readonly string[]): readonly string[] {
  const meter = { steps: 0 };
  if (!isObject(condition)) return path;
  for (const [key, inner] of Object.entries(condition)) {
    const at = [...path, key];
    if (key === '$and') {
      const index = (inner as readonly Json[]).findIndex((each) => !meets(value, each, meter));
      const failed = (inner as readonly Json[])[index];
      if (failed !== undefined) return firstFailure(value, failed, [...at, String(index)]);
    } else if (isOperator(key)) {
      if (!operate(key, value, inner, meter)) return at;
    } else if (!isObject(value)) {
      const names = Object.keys(condition).filter((each) => !isOperator(each));
      if (!hasMembers(value, condition, names, meter)) return path;
    } else if (!meets(own(value, key), inner, meter)) {
      return firstFailure(own(value, key), inner, at);
    }
  }
  return path;
}
