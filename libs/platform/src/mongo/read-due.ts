import type { mongo } from 'mongoose';

/** Documents that are due at a time, with its field, and the indexes by this time and by company. */
export interface DueKind {
  filter: object;
  at: string;
  key: Readonly<Record<string, 1>>;
  ofCompanyKey: Readonly<Record<string, 1>>;
  /** The fields that are not read. */
  without?: Readonly<Record<string, 0>>;
}

interface Owned {
  companyId: string;
}

/** A company with 1,000,000 documents for one time would otherwise delay those of all others for minutes. */
const SHARES_AT_ONCE = 5;

/**
 * Returns a read of at most `limit` due documents of a collection. Without many that are due it is one look-up: those
 * that have been due for the longest. Otherwise half of the page are shares of companies, behind the company that the
 * page before ended with. The look-up skips companies without a due document: one seek in the index for each.
 */
export function createReadDuePage<Found extends Owned & { _id: string }>(kind: DueKind) {
  /** By collection: the company that had the last share. */
  const servedTo = new Map<string, string>();
  const readShares = async (
    documents: mongo.Collection<never>,
    dueAt: Date,
    size: number,
  ): Promise<Found[]> => {
    const { collectionName: name } = documents;
    const shares: Found[] = [];
    let afterId = servedTo.get(name) ?? '';
    for (let count = 0; count < SHARES_AT_ONCE; count += 1) {
      const due = { ...kind.filter, companyId: { $gt: afterId }, [kind.at]: { $lte: dueAt } };
      const some = await read<Found>(kind, documents, { due, key: kind.ofCompanyKey, limit: size });
      const whole = some.length < size ? some : wholeShares(some);
      shares.push(...whole);
      // Behind the last company the next page begins with the first one.
      afterId = some.length < size ? '' : (whole.at(-1)?.companyId ?? '');
      if (afterId === '') break;
    }
    servedTo.set(name, afterId);
    return shares;
  };
  return async <Document extends mongo.Document>(
    collection: mongo.Collection<Document>,
    beforeMs: number,
    limit: number,
  ): Promise<Found[]> => {
    const documents = collection as unknown as mongo.Collection<never>;
    const longest = await longestDue<Found>(kind, documents, beforeMs, limit);
    if (longest.length < limit) return longest;
    const size = Math.max(1, Math.floor(limit / 2 / SHARES_AT_ONCE));
    const shares = await readShares(documents, new Date(beforeMs), size);
    const ids = new Set(shares.map(({ _id }) => _id));
    return [...shares, ...longest.filter(({ _id }) => !ids.has(_id))].slice(0, limit);
  };
}

/** Without the last company, which may have more due than was read, unless it is the only one. */
function wholeShares<Found extends Owned>(some: readonly Found[]): Found[] {
  const [first, last] = [some[0]?.companyId, some.at(-1)?.companyId];
  return some.filter(({ companyId }) => companyId === first || companyId !== last);
}

/** Those that have been due for the longest. */
export function longestDue<Found>(
  kind: DueKind,
  documents: mongo.Collection<never>,
  beforeMs: number,
  limit: number,
): Promise<Found[]> {
  const { filter, at, key } = kind;
  const due = { ...filter, [at]: { $lte: new Date(beforeMs) } };
  return read(kind, documents, { due, key, limit, sort: { [at]: 1 } });
}

interface DuePage {
  due: object;
  key: Readonly<Record<string, 1>>;
  limit: number;
  sort?: Readonly<Record<string, 1>>;
}

function read<Found>(
  { without = {} }: DueKind,
  documents: mongo.Collection<never>,
  { due, key, limit, sort = key }: DuePage,
): Promise<Found[]> {
  const found = documents.find(due, { projection: without });
  return orNone(found.sort(sort).hint(key).limit(limit).toArray() as Promise<Found[]>);
}

/** None also in a day without its index, which a write has made: all documents of it would be read. */
export async function orNone<Value>(reading: Promise<Value[]>): Promise<Value[]> {
  try {
    return await reading;
  } catch (error) {
    if (isMissingIndex(error)) return [];
    throw error;
  }
}

const BAD_VALUE = 2;

function isMissingIndex(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === BAD_VALUE;
}
