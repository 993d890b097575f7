import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const CHANGELOG = 'CHANGELOG.md';
/** Artifact Hub shows a version of the chart as a release candidate by this. */
const CHART = 'deploy/helm/posthorn/Chart.yaml';
const PRERELEASE = /^( {2}artifacthub\.io\/prerelease: ')(.*)'$/m;
const USAGE = `Usage: npm run release -- COMMAND
  set VERSION     writes the version into every file that has it, and dates the section "Unreleased" of ${CHANGELOG}
  check TAG       exits with 1 unless TAG is "v" and the version of every file, and ${CHANGELOG} has its section
  notes VERSION   prints the section of ${CHANGELOG}`;

/** A file that has the version of the release. The first group of the pattern is the version, or several of it. */
export interface Place {
  file: string;
  pattern: RegExp;
}

/**
 * Returns every file that has the version of the release, from the root. The code reads it from package.json:
 * `VERSION` of libs/platform/src/service/metrics.ts.
 */
export function placesOfVersion(): Place[] {
  const manifests = [
    'package.json',
    ...globSync('{apps,libs,services}/*/package.json', { cwd: ROOT }),
  ];
  return [
    ...manifests.map((file) => ({ file, pattern: /^ {2}"version": "(.+)"/gm })),
    // npm writes the name in front of the version.
    {
      file: 'package-lock.json',
      pattern: /"name": "(?:posthorn(?:-monorepo)?|@posthorn\/\w+)",\n +"version": "(.+)"/g,
    },
    { file: 'deploy/Dockerfile', pattern: /^ARG VERSION=(.+)$/gm },
    { file: 'docker-bake.hcl', pattern: /^variable "VERSION" \{\n {2}default = "(.+)"/gm },
    { file: CHART, pattern: /^(?:version|appVersion): (.+)$/gm },
    { file: 'deploy/helm/production.yaml', pattern: /^ {2}tag: (.+)$/gm },
    { file: 'k8s/overlays/production/kustomization.yaml', pattern: /newTag: ([^ }]+)/g },
    { file: 'examples/argocd/application.yaml', pattern: /targetRevision: (.+)$/gm },
  ];
}

/** Returns the versions in a text, in their order. */
export function versionsIn(text: string, { pattern }: Place): string[] {
  return [...text.matchAll(pattern)].map(([, version = '']) => version);
}

/** Returns the text with another version in its places. */
export function withVersion(text: string, { pattern }: Place, version: string): string {
  return text.replace(
    pattern,
    (match: string, before: string) =>
      // The version is the end of the match, but for what closes it.
      match.slice(0, match.lastIndexOf(before)) +
      version +
      match.slice(match.lastIndexOf(before) + before.length),
  );
}

/** Returns the text of Chart.yaml that says whether the version is a release candidate. */
export function withPrerelease(chart: string, version: string): string {
  return chart.replace(PRERELEASE, `$1${String(version.includes('-'))}'`);
}

/** Returns what stands below the heading of a version, null when there is none. */
export function sectionOf(changelog: string, version: string): string | null {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => /^\[?([^\]\s]+)/.exec(section)?.[1] === version);
  return found === undefined ? null : found.slice(found.indexOf('\n')).trim();
}

/** Returns the changelog whose section "Unreleased" is that of the version. Throws when it has none. */
export function withRelease(changelog: string, version: string, day: string): string {
  if (sectionOf(changelog, 'Unreleased') === null) {
    throw new Error(
      `${CHANGELOG} has no section "## Unreleased": describe the release there first`,
    );
  }
  return changelog.replace(/^## \[?Unreleased\]?.*$/m, `## ${version} (${day})`);
}

/** Returns what keeps the repository from being released under this tag, one line each. */
export function problemsOfRelease(tag: string): string[] {
  const version = tag.replace(/^v/, '');
  const problems = placesOfVersion().flatMap((place) => {
    const found = versionsIn(read(place.file), place);
    if (found.length === 0) return [`${place.file} has no version`];
    return found
      .filter((each) => each !== version)
      .map((each) => `${place.file} has ${each}, the tag is ${tag}`);
  });
  if (!/^v\d+\.\d+\.\d+(-rc\.\d+)?$/.test(tag)) problems.unshift(`${tag} is no tag of a release`);
  if (PRERELEASE.exec(read(CHART))?.[2] !== String(version.includes('-'))) {
    problems.push(`${CHART} has another artifacthub.io/prerelease than ${tag}`);
  }
  if (!sectionOf(read(CHANGELOG), version)) {
    problems.push(`${CHANGELOG} has no section "## ${version} (YEAR-MONTH-DAY)"`);
  }
  return problems;
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function setVersion(version: string): void {
  // First, because it throws when nobody has described the release.
  const day = new Date().toISOString().slice(0, 10);
  const changelog = withRelease(read(CHANGELOG), version, day);
  writeFileSync(join(ROOT, CHANGELOG), changelog);
  for (const place of placesOfVersion()) {
    writeFileSync(join(ROOT, place.file), withVersion(read(place.file), place, version));
  }
  writeFileSync(join(ROOT, CHART), withPrerelease(read(CHART), version));
  for (const problem of problemsOfRelease(`v${version}`)) throw new Error(problem);
  console.log(
    'Now write what is generated: node docs/write-openapi.ts && node k8s/write-generated.ts',
  );
}

/** What the commands do with their argument. */
const COMMANDS: Readonly<Record<string, (argument: string) => void>> = {
  set: setVersion,
  check: (tag) => {
    const problems = problemsOfRelease(tag);
    if (problems.length > 0) throw new Error(problems.join('\n'));
  },
  notes: (version) => {
    const notes = sectionOf(read(CHANGELOG), version);
    if (notes === null) throw new Error(`${CHANGELOG} has no section "## ${version}"`);
    console.log(notes);
  },
};

if (import.meta.main) {
  const [name = '', argument] = process.argv.slice(2);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (command === undefined || argument === undefined) throw new Error(USAGE);
    command(argument);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
