import type { mongo } from 'mongoose';
import { pause } from '../../async/pause.ts';
import { StartupError } from '../../service/errors.ts';
import type { ServiceContext } from '../../service/run-service.ts';
import { readAppliedIndexes } from './applied-indexes.ts';
import { placeOf } from './apply-indexes.ts';
import { defaultName, serves, type IndexSpec } from './index-spec.ts';
import { hasCode, listIndexes } from './list-indexes.ts';

const EVERY_MS = 2_000;
const UNAUTHORIZED = 13;

/**
 * Resolves when every unique index among `specs` is ready; until then `/readyz` says which one is missing. Other
 * indexes only speed up queries, and are not waited for. Throws StartupError when a stop comes first. Where this
 * user may not list indexes it logs a warning and resolves.
 */
export async function awaitUniqueIndexes(
  { lifecycle, logger }: Pick<ServiceContext<object>, 'lifecycle' | 'logger'>,
  db: mongo.Db,
  specs: readonly IndexSpec[],
): Promise<void> {
  const check = (): Promise<string[]> =>
    findMissing(db, specs).catch((error: unknown) => {
      if (!hasCode(error, UNAUTHORIZED)) throw error;
      logger.warn(
        {},
        'the unique indexes could not be checked: it needs listIndexes (docs/security.md)',
      );
      return [];
    });
  let isLogged = false;
  for (let missing = await check(); missing.length > 0; missing = await check()) {
    const reason = `MongoDB has no unique index ${missing.join(', ')}, or has not finished it: run deploy/setup/create-indexes.ts`;
    lifecycle.waitFor(reason);
    if (!isLogged) logger.error({ missing }, reason);
    isLogged = true;
    await pause(EVERY_MS, lifecycle.stopping);
    if (lifecycle.stopping.aborted) throw new StartupError(reason);
  }
  lifecycle.waitFor(null);
}

/** Returns `collection.name` of the unique indexes that do not exist, or are being built. */
export async function findMissing(db: mongo.Db, specs: readonly IndexSpec[]): Promise<string[]> {
  const applied = await readAppliedIndexes(db);
  const pending = new Set(applied?.pending);
  const unique = specs.filter(({ options }) => options?.unique === true);
  const missing = unique.map(async (spec) => {
    const found = (await listIndexes(db, spec.collection)).find((each) => serves(each, spec));
    const place = placeOf({ ...spec, name: found?.name ?? defaultName(spec.key) });
    // MongoDB lists an index from the beginning of its build.
    return found && !pending.has(place) ? [] : [place];
  });
  return (await Promise.all(missing)).flat();
}
