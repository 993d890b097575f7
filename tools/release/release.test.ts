import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import {
  placesOfVersion,
  problemsOfRelease,
  sectionOf,
  versionsIn,
  withPrerelease,
  withRelease,
  withVersion,
} from './release.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

describe('the version', () => {
  it('is the same in every package, the image, the chart and the manifests, and has notes', () => {
    expect(problemsOfRelease(`v${VERSION}`)).toEqual([]);
  });

  it('is nowhere but in the places that a release changes', () => {
    const files = ['docker-compose.yml', 'services/gateway/src/openapi/document.ts', 'README.md'];
    expect(files.filter((file) => read(file).includes(VERSION))).toEqual([]);
  });

  it.each(placesOfVersion().map((place) => [place.file, place] as const))(
    'is changed in %s, and nothing else is',
    (file, place) => {
      const text = read(file);
      const changed = withVersion(text, place, '99.1.0');
      const count = versionsIn(text, place).length;
      expect(versionsIn(changed, place)).toEqual(Array<string>(count).fill('99.1.0'));
      expect(withVersion(changed, place, VERSION)).toBe(text);
    },
  );

  it('of the lock file is that of each workspace and of the root, twice', () => {
    const [lock] = placesOfVersion().filter(({ file }) => file === 'package-lock.json');
    const manifests = placesOfVersion().filter(({ file }) => file.endsWith('package.json'));
    const found = lock === undefined ? [] : versionsIn(read(lock.file), lock);
    expect(found).toHaveLength(manifests.length + 1);
  });
});

describe('a tag', () => {
  it('of another version, or in another form, is refused with every reason', () => {
    const problems = problemsOfRelease('v99.1.0');
    expect(problems).toContain(`deploy/Dockerfile has ${VERSION}, the tag is v99.1.0`);
    expect(problems).toContain('CHANGELOG.md has no section "## 99.1.0 (YEAR-MONTH-DAY)"');
    expect(problems.join('\n').includes('artifacthub.io/prerelease')).toBe(VERSION.includes('-'));
    expect(problemsOfRelease(VERSION)).toEqual([`${VERSION} is no tag of a release`]);
  });
});

const CHANGELOG = `# Changelog

## Unreleased

### Added

- A thing.

## 1.0.0 (2026-12-01)

### Breaking

- Another.
`;

describe('the chart', () => {
  it('says whether the version is a release candidate', () => {
    const chart = read('deploy/helm/posthorn/Chart.yaml');
    expect(withPrerelease(chart, '99.1.0')).toContain("artifacthub.io/prerelease: 'false'\n");
    expect(withPrerelease(chart, '99.1.0-rc.2')).toContain("artifacthub.io/prerelease: 'true'\n");
    expect(withPrerelease(withPrerelease(chart, '99.1.0'), VERSION)).toBe(chart);
  });
});

describe('the changelog', () => {
  it('has a section for each version, without its heading', () => {
    expect(sectionOf(CHANGELOG, '1.0.0')).toBe('### Breaking\n\n- Another.');
    expect(sectionOf(CHANGELOG, '1.0')).toBeNull();
  });

  it('has the unreleased changes under the version and day of the release', () => {
    const released = withRelease(CHANGELOG, '1.1.0', '2027-01-02');
    expect(released).toContain('## 1.1.0 (2027-01-02)\n\n### Added\n');
    expect(() => withRelease(released, '1.2.0', '2027-01-03')).toThrow('no section');
  });

  it('of this version has its headings in order, and says last how to upgrade', () => {
    const section = sectionOf(read('CHANGELOG.md'), VERSION) ?? '';
    const headings = [...section.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading);
    const known = ['Added', 'Changed', '**Breaking**', 'Fixed', 'Upgrade'];
    expect(headings).toEqual(known.filter((each) => headings.includes(each)));
    expect(headings.at(-1)).toBe('Upgrade');
  });
});
