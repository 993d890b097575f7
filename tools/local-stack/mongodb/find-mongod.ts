import { findProgram } from '../machine/find-program.ts';
import { MONGOD, type RequiredProgram, WINE } from '../machine/required-programs.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';
import { ensureOfficialMongod } from './official-mongod.ts';

export type MongodSource = { kind: 'program'; path: string } | { kind: 'wine' } | { kind: 'none' };

/** Returns mongod from PATH, else the official build, else the Windows build if wine can run it. */
export async function findMongod(children: Children, log: Log): Promise<MongodSource> {
  const onPath = findProgram('mongod');
  if (onPath !== undefined) return { kind: 'program', path: onPath };
  const official = await ensureOfficialMongod(children, log);
  if (official !== undefined) return { kind: 'program', path: official };
  const canRunWine = process.platform === 'linux' && process.arch === 'x64';
  return { kind: canRunWine ? 'wine' : 'none' };
}

export function mongodbPrograms(source: MongodSource): RequiredProgram[] {
  switch (source.kind) {
    case 'program':
      return [];
    case 'wine':
      return [WINE];
    case 'none':
      return [MONGOD];
  }
}
