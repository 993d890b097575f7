import { isJson, type Json, jsonOf, textOf, textsOf } from './peer-api.ts';

/*
 * Facts about filters of Convoy, from pkg/compare and worker/task of frain-dev/convoy and its page about filters
 * (getconvoy.io/docs):
 *  - A subscription has one filter for all event types, `filter_config.filter`. Newer versions read `filters` in its place, with
 *    an `event_type` each, of which that of `*` is for the types without their own. Each has `body` and `headers`.
 *  - Keys lead down: `order.amount`, or objects in objects. A segment `$` is any element of a list.
 *  - A value is equality, in a list that it is an element. Operators: $eq $neq $gt $gte $lt $lte $in $nin $exist $regex;
 *    $or and $and have lists of filters and stand at the top. Numbers only are compared by size.
 *  - A condition about a field that the event lacks counts only when it is the only one, and then is not met. Here it is not
 *    met in any case.
 */

/** A subscription, with its filters of single event types. */
export interface ConvoySubscription {
  subscription: Json;
  /** From versions that have them. */
  filters: readonly Json[];
}

const PARTS = ['body', 'headers', 'query', 'path'] as const;
/** Conditions on these are about other things than the payload. */
const OTHER_PARTS = ['headers', 'query', 'path'] as const;
const ALL = '*';

const hasConditions = (filter: Json, parts: readonly string[] = PARTS): boolean =>
  parts.some((name) => Object.keys(jsonOf(filter[name])).length > 0);

/** That of the subscription counts where there are none of single event types. */
const filtersOf = ({ subscription, filters }: ConvoySubscription): readonly Json[] =>
  filters.length > 0
    ? filters
    : [{ ...jsonOf(jsonOf(subscription.filter_config).filter), event_type: ALL }];

const typeOf = (filter: Json): string => textOf(filter.event_type) ?? ALL;
const namedBy = (filters: readonly Json[]): string[] =>
  filters.map(typeOf).filter((type) => type !== ALL);

/** Whether any event of its types is kept from the subscription. */
export function hasFilter(each: ConvoySubscription): boolean {
  return filtersOf(each).some((filter) => hasConditions(filter));
}

/**
 * Returns the filter by which a webhook gets the messages of these subscriptions, each at most once; empty when it gets all,
 * and null when it cannot be said here, as with regular expressions and headers.
 */
export function filterOfSubscriptions(subscriptions: readonly ConvoySubscription[]): Json | null {
  const ways = whole(subscriptions.map((each) => waysOf(each, subscriptions.length > 1)));
  return ways && anyOf(ways.flat());
}

/** Returns filters of which a message of the subscription meets one. */
function waysOf(each: ConvoySubscription, isOneOfSeveral: boolean): Json[] | null {
  const types = textsOf(jsonOf(each.subscription.filter_config).event_types);
  // The webhook has the event types of all its subscriptions.
  const isOfSome = isOneOfSeveral && types.length > 0 && !types.includes(ALL);
  const ownTypes = isOfSome ? [{ eventType: { $in: types } }] : [];
  const ways = whole(waysOfTypes(filtersOf(each)));
  return ways?.map((way) => allOf([...ownTypes, ...way])) ?? null;
}

/** Returns the conditions of each way: an event has the filter of its type, or that of all others. */
function waysOfTypes(filters: readonly Json[]): (Json[] | null)[] {
  const strict = filters.filter((filter) => hasConditions(filter));
  const free = namedBy(filters.filter((filter) => !strict.includes(filter)));
  const ways = strict.map((filter) => {
    const type = typeOf(filter);
    const ofType = type === ALL ? isNoneOf(namedBy(filters)) : [{ eventType: type }];
    const conditions = conditionsOf(filter);
    return conditions && [...ofType, ...conditions];
  });
  const isAllStrict = strict.some((filter) => typeOf(filter) === ALL);
  if (!isAllStrict) return [...ways, isNoneOf(namedBy(strict))];
  return free.length > 0 ? [...ways, [{ eventType: { $in: free } }]] : ways;
}

const isNoneOf = (types: readonly string[]): Json[] =>
  types.length === 0 ? [] : [{ $not: { eventType: { $in: types } } }];

/** Null when one of them is. */
function whole<T>(values: readonly (T | null)[]): T[] | null {
  const found = values.filter((each) => each !== null);
  return found.length === values.length ? found : null;
}

function allOf(conditions: readonly Json[]): Json {
  const [first = {}] = conditions;
  return conditions.length > 1 ? { $and: conditions } : first;
}

function anyOf(ways: readonly Json[]): Json {
  const [first = {}] = ways;
  if (ways.some((way) => Object.keys(way).length === 0)) return {};
  return ways.length > 1 ? { $or: ways } : first;
}

function conditionsOf(filter: Json): Json[] | null {
  return hasConditions(filter, OTHER_PARTS) ? null : conditionsOfBody(jsonOf(filter.body));
}

/** Returns filters, all of which hold for the events that meet the conditions. */
function conditionsOfBody(body: Json): Json[] | null {
  const conditions = Object.entries(body).map(([key, value]) =>
    key === '$or' || key === '$and' ? choiceOf(key, value) : leavesOf(key.split('.'), value),
  );
  const found = whole(conditions)?.flat();
  return found ? merged(found) : null;
}

function choiceOf(operator: '$or' | '$and', value: unknown): Json[] | null {
  const filters = Array.isArray(value) && value.length > 0 ? value : [null];
  const ways = whole(filters.map((each) => (isJson(each) ? conditionsOfBody(each) : null)));
  return ways && [{ [operator]: ways.map(allOf) }];
}

/** Returns a filter for each condition below this path. */
function leavesOf(path: readonly string[], value: unknown): Json[] | null {
  const condition = conditionOf(value);
  if (condition !== undefined) return leafOf(path, condition);
  if (!isJson(value) || Object.keys(value).length === 0) return null;
  const inner = Object.entries(value).map(([key, each]) =>
    leavesOf([...path, ...key.split('.')], each),
  );
  return whole(inner)?.flat() ?? null;
}

const isNumber = (value: unknown): boolean => Number.isFinite(value);
const isScalar = (value: unknown): boolean =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value);
const isList = (value: unknown): boolean => Array.isArray(value) && value.every(isScalar);

const OPERANDS: Readonly<Record<string, (operand: unknown) => boolean>> = {
  $eq: isScalar,
  $neq: isScalar,
  $gt: isNumber,
  $gte: isNumber,
  $lt: isNumber,
  $lte: isNumber,
  $in: isList,
  $nin: isList,
  $exist: (operand) => typeof operand === 'boolean',
};

/** A value or operators; undefined for anything else. */
function conditionOf(value: unknown): unknown {
  if (isScalar(value)) return value;
  if (!isJson(value)) return undefined;
  const entries = Object.entries(value);
  const isKnown = entries.every(([name, operand]) => OPERANDS[name]?.(operand) === true);
  return isKnown && entries.length > 0 ? value : undefined;
}

const NO_KEY = /^$|^\$|^\d+$|^__proto__$/;

/** A condition on any element of a list is one on the list. One on an element with a number cannot be said. */
function leafOf(path: readonly string[], condition: unknown): Json[] | null {
  const keys = path.filter((key) => key !== '$');
  if (keys.some((key) => NO_KEY.test(key))) return null;
  const payload = keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), condition);
  const isOfList = keys.length < path.length;
  return [isOfList ? { $and: [{ payload }] } : { payload }];
}

/**
 * Joins the conditions on different fields to one that is easier to read. Those on elements of lists stay apart, inside
 * `$and`: together they would be about one and the same element.
 */
function merged(conditions: readonly Json[]): Json[] {
  const others: Json[] = [];
  let payload: Json | null = null;
  for (const each of conditions) {
    const joined: Json | null = isJson(each.payload) ? join(payload ?? {}, each.payload) : null;
    if (joined) payload = joined;
    else if (Array.isArray(each.$and) && each.$and.length === 1) others.push(each.$and[0] as Json);
    else others.push(each);
  }
  return payload ? [{ payload }, ...others] : others;
}

/** Null when both have conditions on one field. */
function join(one: Json, other: Json): Json | null {
  const result: Record<string, unknown> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    if (!Object.hasOwn(result, key)) result[key] = value;
    else {
      const before = result[key];
      const isPath = [before, value].every((each) => isJson(each) && !hasOperators(each));
      const inner = isPath ? join(before as Json, value as Json) : null;
      if (inner === null) return null;
      result[key] = inner;
    }
  }
  return result;
}

const hasOperators = (value: Json): boolean => Object.keys(value).some((key) => key in OPERANDS);
