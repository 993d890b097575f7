/** The part of MongoDB's query and update language that the stores on the path of a delivery use. */
export type Fields = Record<string, unknown>;

export interface StoredDocument extends Fields {
  _id: string;
}

export function matches(document: Fields, filter: Fields): boolean {
  return Object.entries(filter).every(([path, condition]) =>
    path === '$or'
      ? (condition as Fields[]).some((each) => matches(document, each))
      : holds(valueAt(document, path), condition),
  );
}

function valueAt(document: Fields, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (isFields(value) ? value[name] : undefined), document);
}

function holds(value: unknown, condition: unknown): boolean {
  if (!isFields(condition)) return value === condition;
  return Object.entries(condition).every(([operator, operand]) =>
    compare(operator, value, operand),
  );
}

function compare(operator: string, value: unknown, operand: unknown): boolean {
  switch (operator) {
    case '$in':
      return (operand as unknown[]).includes(value);
    case '$ne':
      return value !== operand;
    case '$lt':
      return (value as number) < (operand as number);
    case '$gt':
      return (value as string) > (operand as string);
    default:
      throw new Error(`the simulated MongoDB knows no ${operator}`);
  }
}

export interface Update {
  $set?: Fields;
  $push?: Record<string, { $each: unknown[]; $slice?: number }>;
}

export function updated(
  document: StoredDocument,
  { $set = {}, $push = {} }: Update,
  arrayFilters: readonly Fields[] = [],
): StoredDocument {
  const result: StoredDocument = { ...document };
  for (const [name, { $each, $slice = Infinity }] of Object.entries($push)) {
    const pushed = [...((document[name] as unknown[] | undefined) ?? []), ...$each];
    result[name] = $slice === Infinity ? pushed : pushed.slice($slice);
  }
  for (const [path, value] of Object.entries($set)) setAt(result, path, value, arrayFilters);
  return result;
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
    document[name] = elements.map((each) => (isMeant(each, element, arrayFilters) ? value : each));
  } else if (inner === undefined) document[name] = value;
  else document[name] = { ...(document[name] as Fields | undefined), [inner]: value };
}

function isMeant(each: Fields, element: string, arrayFilters: readonly Fields[]): boolean {
  return arrayFilters.some((filter) => matches({ [element]: each }, filter));
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
