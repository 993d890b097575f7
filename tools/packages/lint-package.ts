import { checkPackage, Package } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, runProgram } from '../check-ops/programs/run-program.ts';
import { type BuiltPackage, programsFolder } from './build-package.ts';

/**
 * Returns what is wrong with a built package for those who install it: its manifest by publint, and its types, as each
 * kind of resolution finds them, by are-the-types-wrong. Empty when nothing is. Throws the output of the compiler when
 * the types themselves are wrong.
 */
export async function problemsOf(built: BuiltPackage): Promise<string[]> {
  await compileTypes(built);
  return [...(await problemsOfManifest(built.folder)), ...(await problemsOfTypes(built))];
}

/** Compiles the types in ESM and CommonJS with the strictest options: applications may not skip those of packages. */
async function compileTypes({ name, entries }: BuiltPackage): Promise<void> {
  const lines = entries.map((entry) => {
    const path = entry === 'index' ? name : `${name}/${entry}`;
    return `export * as ${entry} from '${path}';\n`;
  });
  const folder = join(programsFolder(), 'programs');
  mkdirSync(folder, { recursive: true });
  const files = ['types.mts', 'types.cts'].map((file) => join(folder, file));
  for (const file of files) writeFileSync(file, lines.join(''));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const strictly = ['--strict', '--exactOptionalPropertyTypes', '--noEmit', '--ignoreConfig'];
  const target = ['--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  await runProgram(process.execPath, [tsc, ...strictly, ...target, ...files], { cwd: folder });
}

/** Returns what publint finds in the folder of a package. */
export async function problemsOfManifest(folder: string): Promise<string[]> {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object;
  const { messages } = await publint({ pkgDir: folder, pack: false, strict: true });
  return messages.map(
    (message) => `publint: ${formatMessage(message, manifest, { color: false }) ?? message.code}`,
  );
}

async function problemsOfTypes({ name, folder }: BuiltPackage): Promise<string[]> {
  const paths = globSync('**/*.*', { cwd: folder });
  const files = paths.map((path) => [
    `/node_modules/${name}/${path}`,
    readFileSync(join(folder, path), 'utf8'),
  ]);
  const result = await checkPackage(
    new Package(Object.fromEntries(files) as Record<string, string>, name, '0.0.0'),
  );
  if (!result.types) return ['are-the-types-wrong: there are no types'];
  return result.problems.map((problem) => `are-the-types-wrong: ${JSON.stringify(problem)}`);
}
