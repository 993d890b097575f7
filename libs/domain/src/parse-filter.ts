import { z } from 'zod';
import { type Filter, isList, isObject, type Json, type JsonObject } from './filter.ts';

/** The grammar of filters, and its bounds. */

export const MAX_FILTER_BYTES = 4_096;
const MAX_CONDITIONS = 50;
const MAX_LEVELS = 10;
const MAX_ENTRIES = 100;

export interface FilterProblem {
  path: string[];
  message: string;
}

/** Returns the filter, or its first problem. `given` is what JSON.parse returned. */
export function parseFilter(given: unknown): { filter: Filter } | { problem: FilterProblem } {
  const value = given as Json;
  if (!isObject(value)) return { problem: { path: [], message: 'must be an object' } };
  const check = { conditions: 0 };
  const problem = problemOfDepth(value, [], 1) ?? problemOfFilter(value, [], check);
  if (problem) return { problem };
  const whole = (message: string) => ({ problem: { path: [], message } });
  if (check.conditions > MAX_CONDITIONS)
    return whole(`must have at most ${MAX_CONDITIONS} conditions`);
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_FILTER_BYTES) {
    return whole(`must have at most ${MAX_FILTER_BYTES} bytes as JSON`);
  }
  return { filter: value as Filter };
}

/** In JSON Schema. */
const FILTER_LIST = {
  type: 'array',
  minItems: 1,
  maxItems: MAX_ENTRIES,
  items: { type: 'object' },
};

/** The filter of a request, which is stored as its JSON text: `filterOf` returns it again. */
export const filterText = z
  .preprocess(
    (given, context) => {
      const parsed = parseFilter(given);
      if ('problem' in parsed) context.addIssue({ code: 'custom', ...parsed.problem });
      return given;
    },
    z.record(z.string(), z.unknown(), 'must be an object'),
  )
  .transform((filter) => JSON.stringify(filter))
  .meta({
    // The grammar below these is code.
    properties: {
      payload: {},
      eventType: {},
      tags: {},
      $and: { ...FILTER_LIST },
      $or: { ...FILTER_LIST },
      $not: { type: 'object' },
    },
    additionalProperties: false,
    description: `Conditions on \`payload\`, \`eventType\` and \`tags\` (docs/filters.md): only messages to its app that meet them go to the webhook. At most ${MAX_FILTER_BYTES} bytes, ${MAX_CONDITIONS} conditions and ${MAX_LEVELS} levels`,
    example: { payload: { amount: { $gte: 100 } } },
  });

/** The same in a response. */
export const filterField = z.record(z.string(), z.unknown()).nullable();

export const shownFilter = (stored: string | null): unknown => stored && filterOf(stored);

/** Takes what `filterText` has returned. */
export function filterOf(stored: string): Filter {
  return JSON.parse(stored) as Filter;
}

/** Returns the filters of the webhooks that have one, by id; null when none has. Equal texts share one filter. */
export function filtersOf(
  webhooks: readonly { id: string; filter: string | null }[],
): ReadonlyMap<string, Filter> | null {
  const byText = new Map<string, Filter>();
  const filters = new Map<string, Filter>();
  for (const { id, filter: text } of webhooks) {
    if (text === null) continue;
    const filter = byText.get(text) ?? filterOf(text);
    byText.set(text, filter);
    filters.set(id, filter);
  }
  return filters.size === 0 ? null : filters;
}

/** What a condition has in common with its neighbours. */
interface Check {
  /** Each operator, each value and each list is one. */
  conditions: number;
}

/** Levels, entries and numbers of conditions and operands alike. */
function problemOfDepth(value: Json, path: string[], level: number): FilterProblem | null {
  if (typeof value === 'number' && !Number.isFinite(value))
    return { path, message: 'is too large' };
  if (typeof value !== 'object' || value === null) return null;
  if (level > MAX_LEVELS) return { path, message: `is below ${MAX_LEVELS} levels` };
  if (isList(value) && value.length > MAX_ENTRIES) {
    return { path, message: `must have at most ${MAX_ENTRIES} entries` };
  }
  return firstOf(Object.entries(value), ([key, each]) =>
    problemOfDepth(each, [...path, key], level + 1),
  );
}

function firstOf<Entry>(
  entries: readonly Entry[],
  problemOf: (entry: Entry) => FilterProblem | null,
): FilterProblem | null {
  for (const entry of entries) {
    const problem = problemOf(entry);
    if (problem) return problem;
  }
  return null;
}

const FACTS = new Set(['payload', 'eventType', 'tags']);
const LOGICAL = new Set(['$and', '$or', '$not']);

/** At the top, a condition is about a message. */
function problemOfFilter(filter: Json, path: string[], check: Check): FilterProblem | null {
  if (!isObject(filter)) return { path, message: 'must be an object' };
  return firstOf(Object.entries(filter), ([key, inner]) => {
    const at = [...path, key];
    if (FACTS.has(key)) return problemOfCondition(inner, at, check);
    if (LOGICAL.has(key)) return problemOfOperator(key, inner, at, check, problemOfFilter);
    return { path: at, message: 'must be payload, eventType, tags, $and, $or or $not' };
  });
}

type ProblemOf = typeof problemOfFilter;

function problemOfCondition(condition: Json, path: string[], check: Check): FilterProblem | null {
  if (!isObject(condition) || Object.keys(condition).length === 0) check.conditions += 1;
  if (isList(condition)) {
    // The values of a list are one condition together.
    const inner = Object.entries(condition).filter(([, each]) => typeof each === 'object');
    return firstOf(inner, ([key, each]) => problemOfCondition(each, [...path, key], check));
  }
  if (!isObject(condition)) return null;
  return firstOf(Object.entries(condition), ([key, inner]) => {
    const at = [...path, key];
    if (!key.startsWith('$')) return problemOfCondition(inner, at, check);
    return problemOfOperator(key, inner, at, check, problemOfCondition);
  });
}

type Operand = [isRight: (operand: Json) => boolean, message: string];

const isText = (operand: Json): operand is string => typeof operand === 'string';
const isEveryOf = (operand: Json, isRight: (entry: Json) => boolean): boolean =>
  isList(operand) && operand.length > 0 && operand.every(isRight);
const isPlain = (entry: Json): boolean => typeof entry !== 'object' || entry === null;

const ANY: Operand = [() => true, ''];
const ORDERED: Operand = [
  (operand) => typeof operand === 'number' || isText(operand),
  'must be a number or text',
];
const MEMBERS: Operand = [
  (operand) => isText(operand) || isEveryOf(operand, isPlain),
  'must be text, or a list of texts, numbers, true, false or null',
];
const TEXTS: Operand = [
  (operand) => isText(operand) || isEveryOf(operand, isText),
  'must be text, or a list of text',
];
const FLAG: Operand = [(operand) => typeof operand === 'boolean', 'must be true or false'];

const OPERANDS: Readonly<Record<string, Operand>> = {
  $eq: ANY,
  $neq: ANY,
  $gt: ORDERED,
  $gte: ORDERED,
  $lt: ORDERED,
  $lte: ORDERED,
  $in: MEMBERS,
  $nin: MEMBERS,
  $startsWith: TEXTS,
  $endsWith: TEXTS,
  $exist: FLAG,
};

function problemOfOperator(
  name: string,
  operand: Json,
  path: string[],
  check: Check,
  problemOf: ProblemOf,
): FilterProblem | null {
  check.conditions += 1;
  if (name === '$not') return problemOf(operand, path, check);
  if (name === '$and' || name === '$or') {
    if (!isEveryOf(operand, () => true)) return { path, message: 'must be a list of conditions' };
    return firstOf(Object.entries(operand as JsonObject), ([key, each]) =>
      problemOf(each, [...path, key], check),
    );
  }
  const rule = Object.hasOwn(OPERANDS, name) ? OPERANDS[name] : undefined;
  if (!rule) return { path, message: 'is no operator' };
  const [isRight, message] = rule;
  return isRight(operand) ? null : { path, message };
}
