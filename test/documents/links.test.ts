import { describe, expect, it } from '@jest/globals';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '../..');
/** Folders that git ignores: a page may name them, though they exist only after a run. */
const SKIPPED = /(^|\/)(node_modules|\.git|\.local|(bench|faults)\/results)(\/|$)/;
const FOLDERS = [
  'services',
  'libs',
  'test',
  'tools',
  'deploy',
  'docs',
  'k8s',
  'bench',
  'faults',
  '.ci',
  '.github',
  'examples',
];

const files = [...FOLDERS.map((folder) => `${folder}/**/*`), '*'].flatMap((pattern) =>
  globSync(pattern, { cwd: ROOT, exclude: (path) => SKIPPED.test(path) }),
);
const names = new Set(files.map((path) => basename(path)));
const pages = files.filter((path) => path.endsWith('.md'));
const sources = files.filter((path) => /\.(ts|js|mjs|ya?ml|xml)$|Dockerfile$/.test(path));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** GitHub's anchor of a heading. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
}

/** Why a relative link of a page leads nowhere; null when it leads somewhere. */
function problemOfLink(page: string, target: string): string | null {
  const [path = '', anchor] = target.split('#');
  const to = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(join(ROOT, to))) return `${target}: there is no ${to}`;
  if (anchor === undefined || anchorsOf(to).includes(anchor)) return null;
  return `${target}: ${to} has no such heading`;
}

function brokenLinks(page: string): string[] {
  return [...read(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .flatMap((target) => problemOfLink(page, target) ?? []);
}

const PATH = new RegExp(`^(${FOLDERS.join('|').replaceAll('.', '\\.')})/[\\w./-]*$`);
const FILE_NAME = /^[\w-]+(\.[\w-]+)*\.(ts|mjs|md|ya?ml)$/;

/** Paths from the root, and names of files, that stand in backticks and do not exist. */
function unknownPaths(page: string): string[] {
  return [...read(page).matchAll(/`([^`\n]+)`/g)]
    .map(([, text = '']) => text)
    .filter((text) => {
      if (PATH.test(text)) return !SKIPPED.test(text) && !existsSync(join(ROOT, text));
      return FILE_NAME.test(text) && !names.has(text);
    });
}

const CONTRACT = 'docs/contract.md';
const rules = new Set(
  [...read(CONTRACT).matchAll(/^(?:## |- \*\*)(C\d+(?:\.\d+)?)\b/gm)].map(([, rule]) => rule),
);

/** Rules that are cited behind the name of the contract, and stand nowhere in it. */
function unknownRules(path: string): string[] {
  const cited = read(path).matchAll(
    /docs\/contract\.md,?[\s*/]+(C\d+(?:\.\d+)?)(?:,? (?:to|and) (C[\d.]*\d))?/g,
  );
  return [...cited]
    .flatMap(([, first, second]) => [first, second])
    .filter((rule) => rule !== undefined && !rules.has(rule))
    .map(String);
}

/** Pages that a source mentions by their path from the root, and that do not exist. */
function unknownPages(path: string): string[] {
  const mentioned = read(path).matchAll(/(?<![\w./-])docs\/[\w./-]+\.(?:md|ts)\b/g);
  return [...mentioned].map(([page]) => page).filter((page) => !existsSync(join(ROOT, page)));
}

/** Comments that cite the pages as a whole, such as `docs: …`: nobody finds the line. */
function vagueCitations(path: string): string[] {
  return read(path)
    .split('\n')
    .filter((line) => /^\s*(\/\*\*|\*|\/\/) docs: /.test(line));
}

const findings = (paths: string[], find: (path: string) => string[]): string[] =>
  paths.flatMap((path) => find(path).map((finding) => `${path}: ${finding}`));

describe('the pages', () => {
  it('link only to files and headings that exist', () => {
    expect(findings(pages, brokenLinks)).toEqual([]);
  });

  it('name only paths and files that exist', () => {
    expect(findings(pages, unknownPaths)).toEqual([]);
  });
});

describe('pages and sources', () => {
  it('cite only rules that the contract has', () => {
    expect(rules.size).toBeGreaterThan(80);
    expect(findings([...pages, ...sources], unknownRules)).toEqual([]);
  });

  it('cite a page by its name', () => {
    expect(findings(sources, vagueCitations)).toEqual([]);
  });

  it('mention only pages that exist', () => {
    expect(findings([...pages, ...sources], unknownPages)).toEqual([]);
  });
});

describe('the contract', () => {
  it('numbers the rules of each section from 1 without a gap', () => {
    const last = new Map<string, number>();
    for (const [, section = '', number = ''] of read(CONTRACT).matchAll(
      /^- \*\*(C\d+)\.(\d+)\*\*/gm,
    )) {
      expect(`${section}.${number}`).toBe(`${section}.${(last.get(section) ?? 0) + 1}`);
      last.set(section, Number(number));
    }
  });

  it('refers only to rules of its own', () => {
    const cited = [...read(CONTRACT).matchAll(/\b(C\d+\.\d+)\b/g)].map(([, rule]) => rule);
    expect(cited.filter((rule) => !rules.has(rule))).toEqual([]);
  });
});

const versions = z.record(z.string(), z.string()).default({});
const manifestSchema = z.object({
  dependencies: versions,
  devDependencies: versions,
  optionalDependencies: versions,
  overrides: versions,
});

const manifests = [
  'package.json',
  ...globSync('{apps,libs,services}/*/package.json', { cwd: ROOT }),
];
const pinned = manifests.flatMap((path) => {
  const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(ROOT, path), 'utf8')));
  return Object.values(manifest)
    .flatMap((group) => Object.entries(group))
    .filter(([name]) => !name.startsWith('@posthorn/'));
});

const rows = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'));

describe('docs/dependencies.md', () => {
  it.each(pinned)('has %s in version %s', (name, version) => {
    const row = rows.find((line) => line.includes(`\`${name}\``) && line.includes(version));
    expect(row).toBeDefined();
  });

  it('has no package that nothing depends on', () => {
    const known = new Set(pinned.map(([name]) => name));
    const listed = rows.flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
    );
    expect(listed.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('package.json [security]', () => {
  it('pins exact versions', () => {
    expect(pinned.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});
