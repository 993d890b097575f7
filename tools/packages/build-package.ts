import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type InlineConfig } from 'tsdown';
import { z } from 'zod';

/*
 * In the repository, a package that is published is TypeScript that Node runs as it is. What `npm publish` takes is
 * written here: JavaScript as ESM and CommonJS, with types for both, in a folder of its own with a manifest of its own.
 */
const ROOT = join(import.meta.dirname, '../..');
/** Built packages are found here by their names, as an application finds them. The workflow of a release publishes all. */
const MODULES = join(ROOT, '.local/packages/node_modules');

export interface PublishedPackage {
  /** Below `libs`. */
  folder: string;
  /**
   * The most that an entry may have with everything of the package that it imports, minified and compressed. Other
   * packages are not counted.
   */
  maxGzipBytes: Readonly<Record<string, number>> & { others: number };
}

/** Every package that is published. */
export const PUBLISHED: readonly PublishedPackage[] = [
  { folder: 'verify', maxGzipBytes: { index: 3_200, others: 3_600 } },
  { folder: 'client', maxGzipBytes: { others: 12_000 } },
];

export interface BuiltPackage {
  name: string;
  /** Absolute. It has the manifest and the files to publish. */
  folder: string;
  /** Absolute. */
  sourceFolder: string;
  /** The names of its entries; `index` is the main one. */
  entries: string[];
}

const manifestSchema = z.looseObject({
  name: z.string(),
  /** Sources by subpath, such as `"./express": "./src/express.ts"`. */
  exports: z.record(z.string(), z.string()),
});

/** Writes the package into a folder below `.local/packages`, and returns what it has. Throws when it cannot be built. */
export async function buildPackage({ folder }: PublishedPackage): Promise<BuiltPackage> {
  const sourceFolder = join(ROOT, 'libs', folder);
  const manifest = manifestSchema.parse(
    JSON.parse(readFileSync(join(sourceFolder, 'package.json'), 'utf8')),
  );
  const built = {
    name: manifest.name,
    folder: join(MODULES, manifest.name),
    sourceFolder,
    entries: Object.values(manifest.exports).map((path) => basename(path, '.ts')),
  };
  rmSync(built.folder, { recursive: true, force: true });
  await build({ ...buildOptions(built), dts: true, outDir: built.folder });
  writeManifest(built.folder, publishedManifest(manifest, `libs/${folder}`));
  cpSync(join(sourceFolder, 'README.md'), join(built.folder, 'README.md'));
  cpSync(join(ROOT, 'LICENSE'), join(built.folder, 'LICENSE'));
  return built;
}

/**
 * Writes the package of the command line, `posthorn`, in the same way, and returns its folder: one program without types.
 * Its dependencies stay outside.
 */
export async function buildCommandLine(): Promise<string> {
  const sourceFolder = join(ROOT, 'apps/cli');
  const manifest = JSON.parse(readFileSync(join(sourceFolder, 'package.json'), 'utf8')) as object;
  const folder = join(MODULES, 'posthorn');
  const program = join(folder, 'main.js');
  rmSync(folder, { recursive: true, force: true });
  const options = buildOptions({ name: 'posthorn', folder, sourceFolder, entries: ['main'] });
  await build({ ...options, format: 'esm', platform: 'node', dts: false, outDir: folder });
  chmodSync(program, 0o755);
  writeManifest(folder, {
    ...withoutRepository(manifest),
    ...repositoryOf('apps/cli'),
    bin: { posthorn: 'main.js' },
  });
  cpSync(join(sourceFolder, 'README.md'), join(folder, 'README.md'));
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  return folder;
}

function writeManifest(folder: string, manifest: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function buildOptions({ sourceFolder, entries }: BuiltPackage): InlineConfig {
  return {
    config: false,
    cwd: sourceFolder,
    entry: entries.map((entry) => `src/${entry}.ts`),
    format: ['esm', 'cjs'],
    platform: 'neutral',
    target: 'es2022',
    // Of the repository, which would be searched for upwards too.
    tsconfig: join(ROOT, 'tsconfig.base.json'),
    logLevel: 'warn',
    checks: { pluginTimings: false },
    outExtensions: ({ format }) =>
      format === 'cjs' ? { js: '.cjs', dts: '.d.cts' } : { js: '.js', dts: '.d.ts' },
  };
}

const REPOSITORY_ONLY = ['devDependencies', 'scripts'];

/**
 * The manifest without what concerns the repository. Entries are in the folder itself, where old resolvers look too. npm
 * refuses provenance when `repository` is not where the workflow runs, which in a fork is another one.
 */
export function publishedManifest(
  manifest: z.infer<typeof manifestSchema>,
  directory: string,
  repository = process.env.GITHUB_REPOSITORY,
): object {
  const paths = Object.entries(manifest.exports).map(([subpath, source]) => {
    const file = `./${basename(source, '.ts')}`;
    const conditions = {
      import: { types: `${file}.d.ts`, default: `${file}.js` },
      require: { types: `${file}.d.cts`, default: `${file}.cjs` },
    };
    return [subpath, conditions] as const;
  });
  return {
    ...withoutRepository(manifest),
    ...repositoryOf(directory, repository),
    main: './index.cjs',
    module: './index.js',
    types: './index.d.cts',
    exports: { ...Object.fromEntries(paths), './package.json': './package.json' },
  };
}

function withoutRepository(manifest: object): object {
  const kept = Object.entries(manifest).filter(([field]) => !REPOSITORY_ONLY.includes(field));
  return Object.fromEntries(kept);
}

function repositoryOf(directory: string, repository = process.env.GITHUB_REPOSITORY): object {
  if (repository === undefined) return {};
  return {
    repository: { type: 'git', url: `git+https://github.com/${repository}.git`, directory },
  };
}

/** Returns the bytes of each entry, minified and compressed, with everything of the package that it needs. */
export async function gzipBytesOf(built: BuiltPackage): Promise<Map<string, number>> {
  const sizes = built.entries.map(async (entry) => {
    const options = { ...buildOptions({ ...built, entries: [entry] }), format: 'esm' } as const;
    const bundles = await build({ ...options, minify: true, dts: false, write: false });
    const code = bundles.flatMap(({ chunks }) =>
      chunks.map((each) => ('code' in each ? each.code : '')),
    );
    return [entry, gzipSync(code.join(''), { level: 9 }).length] as const;
  });
  return new Map(await Promise.all(sizes));
}

/** Returns the folder whose programs find the built packages by name. */
export const programsFolder = (): string => dirname(MODULES);
