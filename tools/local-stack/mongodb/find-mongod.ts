import { findProgram } from '../machine/on-path.ts';
import { MONGOD, type Part, WINE } from '../machine/parts.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';
import { officialMongod } from './official-mongod.ts';

export type MongodSource = { kind: 'program'; path: string } | { kind: 'wine' } | { kind: 'none' };

/** PATH first, then the official build, then the build for Windows where wine can run it. */
export async function findMongod(children: Children, log: Log): Promise<MongodSource> {
  const onPath = findProgram('mongod');
  if (onPath !== undefined) return { kind: 'program', path: onPath };
  const official = await officialMongod(children, log);
  if (official !== undefined) return { kind: 'program', path: official };
  const canRunWine = process.platform === 'linux' && process.arch === 'x64';
  return { kind: canRunWine ? 'wine' : 'none' };
}

export function mongodbParts(source: MongodSource): Part[] {
  switch (source.kind) {
    case 'program':
      return [];
    case 'wine':
      return [WINE];
    case 'none':
      return [MONGOD];
  }
}
