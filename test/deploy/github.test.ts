import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import {
  programsFolder,
  PUBLISHED,
  publishedManifest,
} from '../../tools/packages/build-package.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

interface Step {
  uses?: string;
  run?: string;
}

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, { uses?: string; steps?: Step[] }>;
}

const workflows = globSync('.github/workflows/*.yaml', { cwd: ROOT })
  .sort()
  .map((file) => [file, parse(read(file)) as Workflow] as const);

/** actionlint checks the rest: `npm run check:ops -- workflows`. */
describe.each(workflows)('%s', (_file, { jobs, permissions }) => {
  const steps = Object.values(jobs).flatMap((job) => job.steps ?? []);
  const commands = steps.map(({ run = '' }) => run).join('\n');

  it('runs files and scripts of the repository that exist', () => {
    const files = commands.match(/(?<![\w/.-])(?:\.ci|tools|deploy|docs)\/[\w./-]+/g) ?? [];
    expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...commands.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, name]) => name);
    expect(named.filter((name) => name === undefined || !(name in scripts))).toEqual([]);
    const called = Object.values(jobs).flatMap(({ uses }) => uses ?? []);
    expect(called.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('uses actions by their commit, which nobody can move', () => {
    const used = steps.flatMap(({ uses }) => uses ?? []);
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((action) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(action))).toEqual([]);
  });

  it('may write nothing but what a job asks for', () => {
    expect(permissions).toEqual({ contents: 'read' });
  });
});

describe('the workflow of a release', () => {
  const [, release] = workflows.find(([file]) => file.endsWith('release.yaml')) ?? [];

  it('publishes nothing before all checks are good', () => {
    const { check, ...others } = (release?.jobs ?? {}) as Record<string, { needs?: string[] }>;
    expect(check).toMatchObject({ uses: './.github/workflows/check.yaml' });
    for (const name of ['image', 'chart', 'packages']) {
      expect(others[name]?.needs).toContain('check');
    }
    expect(others.notes?.needs).toEqual(['version', 'image', 'chart', 'packages']);
  });
});

describe('the job of a release', () => {
  const [, release] = workflows.find(([file]) => file.endsWith('release.yaml')) ?? [];
  const commandsOf = (name: string): string =>
    (release?.jobs[name]?.steps ?? []).map(({ run = '' }) => run).join('\n');

  it('that publishes packages takes the folders that the build has written', () => {
    const commands = commandsOf('packages');
    expect(commands).toContain('npm run packages -- build\n');
    const [, folders = ''] =
      /for folder in (\S+)\/@posthorn\/\* \1\/posthorn; do/.exec(commands) ?? [];
    expect(folders).toBe(`${relative(ROOT, programsFolder())}/node_modules`);
    expect(commands).not.toContain('--workspaces');
    const names = globSync('libs/*/package.json', { cwd: ROOT })
      .map((file) => JSON.parse(read(file)) as { name: string; private?: boolean })
      .filter((manifest) => manifest.private === false)
      .map(({ name }) => name);
    const manifest = { name: '@posthorn/some', exports: { '.': './src/index.ts' } };
    // Without it npm refuses `--provenance`.
    expect(publishedManifest(manifest, 'libs/some', 'a-fork/posthorn')).toMatchObject({
      repository: { url: 'git+https://github.com/a-fork/posthorn.git', directory: 'libs/some' },
    });
    expect(names).toEqual(PUBLISHED.map(({ folder }) => `@posthorn/${folder}`));
  });

  it('that pushes the chart writes the image of the release into it', () => {
    const [, line = ''] = /sed -i "s\|\^(.+)\$\|/.exec(commandsOf('chart')) ?? [];
    const values = read('deploy/helm/posthorn/values.yaml');
    expect(values.split('\n').filter((each) => each === line)).toEqual(['  repository: posthorn']);
    expect(parse(values)).toMatchObject({ image: { repository: 'posthorn' } });
  });
});

describe('issue forms', () => {
  it.each(globSync('.github/ISSUE_TEMPLATE/*.yml', { cwd: ROOT }))('%s is YAML', (file) => {
    expect(parse(read(file))).toEqual(expect.any(Object));
  });

  it('ask for fields of their own', () => {
    for (const name of ['bug', 'feature']) {
      const form = parse(read(`.github/ISSUE_TEMPLATE/${name}.yml`)) as { body: { id?: string }[] };
      const ids = form.body.flatMap(({ id }) => id ?? []);
      expect([...new Set(ids)]).toEqual(ids);
    }
  });
});
