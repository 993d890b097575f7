import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { SettingsFailure, UsageFailure } from './failures.ts';
import { isOfThisUser, readText, replaceFile } from './files.ts';

/*
 * Where the API is and with which key, in order: `--api-url` and `--profile`, then POSTHORN_URL, POSTHORN_API_KEY and
 * POSTHORN_PROFILE, then `.posthorn/config.toml` of this folder or one above, then the current profile of the user.
 */

/** One installation and a key for it. */
export interface Profile {
  url: string;
  apiKey: string;
}

/** `~/.config/posthorn/config.toml`. */
export interface UserConfig {
  /** The name of the profile that counts without `--profile`; null before the first login. */
  current: string | null;
  profiles: ReadonlyMap<string, Profile>;
}

/**
 * `.posthorn/config.toml` of a project, which is committed: never a key, and no address either, since whoever writes it
 * would receive the key of the user's profile.
 */
export interface ProjectConfig {
  /** The name of a profile of the user. */
  profile: string | null;
  /** A JSON file below the project, such as the one that the local stack writes: `apiKey`, and `baseUrl` on this machine. */
  credentialsFile: string | null;
  /** Used where a command takes `--app` and has none. */
  app: string | null;
}

export interface Credentials extends Profile {
  /** For people: the source of the key. */
  source: string;
}

interface Place {
  env: Readonly<Record<string, string | undefined>>;
  /** The working directory. */
  folder: string;
  homeFolder: string;
}

export interface GivenCredentials {
  apiUrl?: string | undefined;
  profile?: string | undefined;
}

/** Returns the credentials. Throws a SettingsFailure that says how to log in when no source has a key. */
export function findCredentials(place: Place, given: GivenCredentials): Credentials {
  const found = lookUpCredentials(place, given);
  requireHttpUrl(
    `The address of the gateway (--api-url, POSTHORN_URL or ${found.source})`,
    found.url,
  );
  if (/^[\x21-\x7e]+$/.test(found.apiKey.trim())) return found;
  throw new SettingsFailure(
    `The API key (${found.source}) is empty, or has characters that no API key has`,
  );
}

/** Throws a UsageFailure, which does not show the address: it may have a password. */
export function requireHttpUrl(what: string, address: string): void {
  const url = URL.canParse(address) ? new URL(address) : null;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isHttp && url.username === '' && url.password === '') return;
  throw new UsageFailure(
    `${what} must begin with http:// or https://, and have no user name and no password`,
  );
}

function lookUpCredentials(place: Place, given: GivenCredentials): Credentials {
  const { env } = place;
  const profileName = given.profile ?? setting(env, 'POSTHORN_PROFILE');
  const url = given.apiUrl ?? setting(env, 'POSTHORN_URL');
  const apiKey = setting(env, 'POSTHORN_API_KEY');
  if (apiKey !== undefined && given.profile === undefined) {
    const fallback = url ?? userProfileOf(place, profileName)?.url;
    if (fallback === undefined)
      throw new SettingsFailure('Set POSTHORN_URL beside POSTHORN_API_KEY');
    return { url: fallback, apiKey, source: 'POSTHORN_API_KEY' };
  }
  const found =
    profileName === undefined
      ? (projectCredentialsOf(place) ?? userProfileOf(place, undefined))
      : userProfileOf(place, profileName);
  if (!found) {
    throw new SettingsFailure(
      'There is no API key: run posthorn login, or set POSTHORN_URL and POSTHORN_API_KEY',
    );
  }
  return { ...found, url: url ?? found.url };
}

/** An empty variable counts as none. */
function setting(env: Place['env'], name: string): string | undefined {
  return env[name] === '' ? undefined : env[name];
}

function userProfileOf(place: Place, name: string | undefined): Credentials | undefined {
  const { current, profiles } = readUserConfig(place);
  const wanted = name ?? current;
  if (wanted === null) return undefined;
  const profile = profiles.get(wanted);
  if (!profile)
    throw new SettingsFailure(`There is no profile ${wanted}: see posthorn profile list`);
  return { ...profile, source: `profile ${wanted}` };
}

function projectCredentialsOf(place: Place): Credentials | undefined {
  const project = findProject(place);
  if (!project) return undefined;
  const { profile, credentialsFile } = project.config;
  if (profile !== null) return userProfileOf(place, profile);
  if (credentialsFile === null) return undefined;
  const path = resolve(project.folder, credentialsFile);
  const inside = relative(project.folder, path);
  if (inside.startsWith('..') || isAbsolute(inside)) {
    throw new SettingsFailure(`${project.path}: credentials-file must be inside ${project.folder}`);
  }
  // The local stack has not been started yet.
  if (!existsSync(path)) return undefined;
  return { ...readCredentialsFile(path), source: inside };
}

function readCredentialsFile(path: string): Profile {
  refuseOthersAccess(path);
  const text = readText(path);
  try {
    const { baseUrl, apiKey } = JSON.parse(text) as Record<string, unknown>;
    if (typeof baseUrl === 'string' && typeof apiKey === 'string' && isOfThisMachine(baseUrl)) {
      return { url: baseUrl, apiKey };
    }
  } catch {
    // Refused below: the message of JSON.parse would show a part of the key.
  }
  throw new SettingsFailure(
    `${path} must be JSON with apiKey, and a baseUrl of this machine such as http://127.0.0.1:8080`,
  );
}

/** Whoever writes the project, or packs an archive of it, would receive at another address what its user sends. */
function isOfThisMachine(address: string): boolean {
  return URL.canParse(address) && isLoopback(new URL(address).hostname);
}

/** `hostname` is that of a URL. */
export const isLoopback = (hostname: string): boolean =>
  /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

interface Project {
  /** It has the folder `.posthorn`. */
  folder: string;
  path: string;
  config: ProjectConfig;
}

/**
 * Finds the configuration of the project in this folder or the nearest one above, up to the root of the checkout and the
 * home folder: folders above these belong to other projects or users.
 */
export function findProject({
  folder,
  homeFolder,
}: Pick<Place, 'folder' | 'homeFolder'>): Project | null {
  const home = existsSync(homeFolder) ? realpathSync(homeFolder) : homeFolder;
  for (let each = folder; ; each = dirname(each)) {
    const path = join(each, '.posthorn/config.toml');
    if (existsSync(path)) return { folder: each, path, config: readProjectConfig(path) };
    const isLast = each === home || each === dirname(each) || existsSync(join(each, '.git'));
    if (isLast) return null;
  }
}

/** Names a profile in the configuration of this folder, which has no key and may be committed. Other fields stay. */
export function writeProjectProfile(folder: string, profile: string): void {
  const path = join(folder, '.posthorn/config.toml');
  const fields = existsSync(path) ? readProjectToml(path) : {};
  mkdirSync(dirname(path), { recursive: true });
  replaceFile(path, stringify({ ...fields, profile }));
}

const PROJECT_FIELDS = ['profile', 'credentials-file', 'app'];

function readProjectConfig(path: string): ProjectConfig {
  const table = readProjectToml(path);
  const unknown = Object.keys(table).filter((name) => !PROJECT_FIELDS.includes(name));
  if (unknown.length > 0) {
    throw new SettingsFailure(
      `${path}: ${unknown.join(', ')} is not allowed here, only ${PROJECT_FIELDS.join(', ')}`,
    );
  }
  return {
    profile: textOf(table, 'profile', path),
    credentialsFile: textOf(table, 'credentials-file', path),
    app: textOf(table, 'app', path),
  };
}

/** In a folder that everybody may write to, another user could choose the profile and the app of a command. */
function readProjectToml(path: string): TomlTable {
  if (!isOfThisUser(statSync(path))) {
    throw new SettingsFailure(
      `${path} belongs to another user, and is not read: set its owner, or use --profile and --app`,
    );
  }
  return readToml(path);
}

function textOf(table: TomlTable, name: string, path: string): string | null {
  const value = table[name];
  if (value === undefined) return null;
  if (typeof value !== 'string') throw new SettingsFailure(`${path}: ${name} must be text`);
  return value;
}

/** The folder of everything that the command keeps for the user. */
export function userFolderOf({ env, homeFolder }: Place): string {
  const base = setting(env, 'XDG_CONFIG_HOME') ?? join(homeFolder, '.config');
  return join(base, 'posthorn');
}

const userConfigPathOf = (place: Place): string => join(userFolderOf(place), 'config.toml');

/** Throws when others may read the file. Without a file, there are no profiles. */
export function readUserConfig(place: Place): UserConfig {
  const path = userConfigPathOf(place);
  if (!existsSync(path)) return { current: null, profiles: new Map() };
  refuseOthersAccess(path);
  const table = readToml(path);
  const profiles = Object.entries((table.profiles ?? {}) as Record<string, TomlTable>);
  return {
    current: textOf(table, 'current', path),
    profiles: new Map(profiles.map(([name, fields]) => [name, profileOf(fields, name, path)])),
  };
}

function profileOf(table: TomlTable, name: string, path: string): Profile {
  const url = textOf(table, 'url', path);
  const apiKey = textOf(table, 'api-key', path);
  if (url === null || apiKey === null) {
    throw new SettingsFailure(`${path}: the profile ${name} needs url and api-key`);
  }
  return { url, apiKey };
}

/** Replaces the file at once, readable for the user alone. A link to it, as of a folder of dotfiles, stays. */
export function writeUserConfig(place: Place, { current, profiles }: UserConfig): void {
  const path = userConfigPathOf(place);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const tables = [...profiles].map(([name, { url, apiKey }]) => [name, { url, 'api-key': apiKey }]);
  const text = stringify({
    ...(current === null ? {} : { current }),
    profiles: Object.fromEntries(tables) as TomlTable,
  });
  replaceFile(path, text, 0o600);
}

/** Windows has no such modes. */
function refuseOthersAccess(path: string): void {
  if (process.platform === 'win32') return;
  const mode = statSync(path).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  throw new SettingsFailure(
    `${path} has a key and the mode ${mode.toString(8)}: others can read it. Run chmod 600 on it`,
  );
}

function readToml(path: string): TomlTable {
  const text = readText(path);
  try {
    return parse(text);
  } catch (error) {
    // The message of the parser shows the line, which may have a key.
    const { line } = error as { line?: unknown };
    throw new SettingsFailure(
      `${path} is not valid TOML${typeof line === 'number' ? ` in line ${line}` : ''}`,
    );
  }
}
