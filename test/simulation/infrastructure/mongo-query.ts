/**
 * Filters and updates of MongoDB, as far as the stores of messages, deliveries and webhooks use them.
 */
export type Fields = Record<string, unknown>;

export interface StoredDocument extends Fields {
  _id: string;
}

export function matches(document: Fields, filter: Fields): boolean {
  return Object.entries(filter).every(([path, condition]) => {
    if (path === '$or') return (condition as Fields[]).some((each) => matches(document, each));
    if (path === '$expr') return isListed(document, condition as ListedValues);
    return satisfies(valueAt(document, path), condition);
  });
}

/** The one expression that the stores use: whether the values of these fields are one of the listed rows. */
interface ListedValues {
  $in: [paths: string[], listed: { $literal: unknown[][] }];
}

function isListed(document: Fields, { $in: [paths, { $literal: rows }] }: ListedValues): boolean {
  const values = paths.map((path) => valueAt(document, path.slice(1)));
  return rows.some((row) => row.every((value, index) => satisfies(values[index], value)));
}

function valueAt(document: Fields, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (isFields(value) ? value[name] : undefined), document);
}

function satisfies(value: unknown, condition: unknown): boolean {
  if (condition instanceof Date) {
    return value instanceof Date && value.getTime() === condition.getTime();
  }
  if (!isFields(condition)) return isOrHas(value, condition);
  return Object.entries(condition).every(([operator, operand]) =>
    compare(operator, value, operand),
  );
}

/** An array matches what it has. */
function isOrHas(value: unknown, wanted: unknown): boolean {
  return Array.isArray(value) ? value.includes(wanted) : value === wanted;
}

function compare(operator: string, value: unknown, operand: unknown): boolean {
  switch (operator) {
    case '$in':
      return (operand as unknown[]).includes(value);
    case '$ne':
      return !isOrHas(value, operand);
    case '$lt':
      return (value as number) < (operand as number);
    case '$lte':
      return (value as string) <= (operand as string);
    case '$gt':
      return (value as string) > (operand as string);
    case '$gte':
      return (value as string) >= (operand as string);
    case '$exists':
      return (value !== undefined) === operand;
    default:
      throw new Error(`the simulated MongoDB does not support ${operator}`);
  }
}

export interface Update {
  $set?: Fields;
  $inc?: Record<string, number>;
  $min?: Fields;
  /** Only of a document that the update makes. */
  $setOnInsert?: Fields;
  $unset?: Fields;
  $addToSet?: Fields;
  $push?: Record<string, { $each: unknown[]; $slice?: number }>;
}

/** Returns a copy of the document with the update applied. */
export function applyUpdate(
  document: StoredDocument,
  { $set = {}, $unset = {}, $push = {}, $addToSet = {}, $inc = {}, $min = {} }: Update,
  arrayFilters: readonly Fields[] = [],
): StoredDocument {
  const result: StoredDocument = { ...document };
  for (const [name, by] of Object.entries($inc)) {
    result[name] = ((result[name] as number | undefined) ?? 0) + by;
  }
  for (const [name, value] of Object.entries($min)) {
    const isLess = result[name] === undefined || (value as string) < (result[name] as string);
    if (isLess) result[name] = value;
  }
  for (const [name, value] of Object.entries($addToSet)) {
    result[name] = [...new Set([...((document[name] as unknown[] | undefined) ?? []), value])];
  }
  for (const [name, { $each, $slice = Infinity }] of Object.entries($push)) {
    const pushed = [...((document[name] as unknown[] | undefined) ?? []), ...$each];
    result[name] = $slice === Infinity ? pushed : pushed.slice($slice);
  }
  for (const [path, value] of Object.entries($set)) setAt(result, path, value, arrayFilters);
  const kept = Object.entries(result).filter(([name]) => !(name in $unset));
  return { ...Object.fromEntries(kept), _id: document._id };
}

function setAt(
  document: Fields,
  path: string,
  value: unknown,
  arrayFilters: readonly Fields[],
): void {
  const [name = '', inner] = path.split('.');
  const element = /^\$\[(\w+)\]$/.exec(inner ?? '')?.[1];
  if (element !== undefined) {
    const elements = document[name] as Fields[];
    document[name] = elements.map((each) =>
      matchesArrayFilter(each, element, arrayFilters) ? value : each,
    );
  } else if (inner === undefined) document[name] = value;
  else document[name] = { ...(document[name] as Fields | undefined), [inner]: value };
}

function matchesArrayFilter(
  each: Fields,
  element: string,
  arrayFilters: readonly Fields[],
): boolean {
  return arrayFilters.some((filter) => matches({ [element]: each }, filter));
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export type Projection = Record<string, 0 | 1 | { $slice: number }>;

/**
 * Returns a function that projects a document. As in MongoDB, a 1 makes the projection inclusive, a 0 or a slice alone
 * does not.
 */
export function projectionOf(fields: Projection): (document: StoredDocument) => StoredDocument {
  const isInclusive = Object.values(fields).includes(1);
  return (document) => {
    const projected: StoredDocument = isInclusive ? { _id: document._id } : { ...document };
    for (const [name, rule] of Object.entries(fields)) {
      const value = document[name];
      if (value === undefined) continue;
      if (rule === 0) projected[name] = undefined;
      else projected[name] = rule === 1 || !Array.isArray(value) ? value : value.slice(rule.$slice);
    }
    return projected;
  };
}
