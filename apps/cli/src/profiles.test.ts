import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import {
  findCredentials,
  findProject,
  readUserConfig,
  writeProjectProfile,
  writeUserConfig,
} from './profiles.ts';

let homeFolder: string;
let folder: string;

beforeEach(() => {
  [homeFolder, folder] = [scratchFolder(), scratchFolder()];
});

const find = (
  env: Record<string, string> = {},
  given: { apiUrl?: string; profile?: string } = {},
) => findCredentials({ env, folder, homeFolder }, given);

const USER = { url: 'https://user.example.com', apiKey: 'phk_user' };
const OTHER = { url: 'https://other.example.com', apiKey: 'phk_other' };

function storeProfiles(): void {
  const profiles = new Map([
    ['user', USER],
    ['other', OTHER],
  ]);
  writeUserConfig({ env: {}, folder, homeFolder }, { current: 'user', profiles });
}

function writeProject(config: string, credentials?: object, mode = 0o600): void {
  mkdirSync(join(folder, '.posthorn'), { recursive: true });
  writeFileSync(join(folder, '.posthorn/config.toml'), config);
  if (credentials) writeFileSync(join(folder, 'key.json'), JSON.stringify(credentials), { mode });
}

const LOCAL = { baseUrl: 'http://127.0.0.1:8080', apiKey: 'phk_local' };

describe('the credentials', () => {
  it('are those of the option, then the environment, then the project, then the user', () => {
    expect(() => find()).toThrow('posthorn login');
    storeProfiles();
    expect(find()).toMatchObject(USER);
    writeProject('credentials-file = "key.json"', LOCAL);
    expect(find()).toMatchObject({ url: LOCAL.baseUrl, apiKey: LOCAL.apiKey });
    const env = { POSTHORN_API_KEY: 'phk_env', POSTHORN_URL: 'https://env.example.com' };
    expect(find(env)).toMatchObject({ url: env.POSTHORN_URL, apiKey: 'phk_env' });
    expect(find(env, { profile: 'other', apiUrl: 'https://x.example.com' })).toMatchObject({
      ...OTHER,
      url: 'https://x.example.com',
    });
    expect(find({ POSTHORN_PROFILE: 'other' })).toMatchObject(OTHER);
  });

  it('of the environment never go to an address that a project names', () => {
    writeProject('credentials-file = "key.json"', LOCAL);
    expect(() => find({ POSTHORN_API_KEY: 'phk_env' })).toThrow('Set POSTHORN_URL');
  });

  it('of a project are for this machine: another address would receive what its user sends', () => {
    for (const baseUrl of ['https://evil.example.com', 'http://127.0.0.1.evil.example', 'x', 7]) {
      writeProject('credentials-file = "key.json"', { ...LOCAL, baseUrl });
      expect(() => find()).toThrow('of this machine');
    }
    for (const baseUrl of ['http://localhost:1', 'http://[::1]:1', 'https://127.1.2.3']) {
      writeProject('credentials-file = "key.json"', { ...LOCAL, baseUrl });
      expect(find().url).toBe(baseUrl);
    }
  });

  it.each([
    ['url = "https://evil.example.com"', 'url is not allowed here'],
    ['credentials-file = "../key.json"', 'must be inside'],
    ['credentials-file = "/etc/passwd"', 'must be inside'],
    ['profile = 7', 'profile must be text'],
    ['profile = "gone"', 'There is no profile gone'],
    ['key = "phk_shown', 'is not valid TOML in line 1'],
  ])('are refused for a project with %s', (config, message) => {
    writeProject(config);
    expect(() => find()).toThrow(message);
    expect(() => find()).not.toThrow('phk_shown');
  });

  it('in a file that others can read are refused', () => {
    writeProject('credentials-file = "key.json"', LOCAL, 0o644);
    chmodSync(join(folder, 'key.json'), 0o644);
    expect(() => find()).toThrow('chmod 600');
    storeProfiles();
    chmodSync(join(homeFolder, '.config/posthorn/config.toml'), 0o640);
    expect(() => find({}, { profile: 'user' })).toThrow('chmod 600');
  });
});

describe('the project', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const below = (...names: string[]): string => {
    const path = join(folder, ...names);
    mkdirSync(path, { recursive: true });
    return path;
  };

  it('is that of the folder or the nearest one above', () => {
    writeProject('app = "uid:shop"');
    const found = findProject({ folder: below('src/deep'), homeFolder });
    expect(found).toMatchObject({ folder, config: { app: 'uid:shop' } });
  });

  it('is not above the root of the checkout or the home folder', () => {
    writeProject('app = "uid:shop"');
    below('checkout/.git');
    expect(findProject({ folder: below('checkout/src'), homeFolder })).toBeNull();
    expect(findProject({ folder: below('home/src'), homeFolder: below('home') })).toBeNull();
    mkdirSync(join(folder, '.git'));
    expect(findProject({ folder: below('src'), homeFolder })).toMatchObject({ folder });
    expect(findProject({ folder, homeFolder: folder })).toMatchObject({ folder });
  });

  it('of another user is not read', () => {
    writeProject('app = "uid:shop"');
    const path = join(folder, '.posthorn/config.toml');
    const userId = process.getuid?.() ?? 0;
    // Files of root are trusted, and root alone can change an owner.
    if (userId === 0) chownSync(path, 4_242, 4_242);
    else jest.spyOn(process as { getuid: () => number }, 'getuid').mockReturnValue(userId + 1);
    expect(() => findProject({ folder, homeFolder })).toThrow('belongs to another user');
    expect(() => {
      writeProjectProfile(folder, 'other');
    }).toThrow('belongs to another user');
  });
});

it('a project names its profile, before its key file, and keeps what else it has', () => {
  storeProfiles();
  writeProject('credentials-file = "key.json"\napp = "uid:shop"', LOCAL);
  writeProjectProfile(folder, 'other');
  expect(find()).toMatchObject(OTHER);
  const text = readFileSync(join(folder, '.posthorn/config.toml'), 'utf8');
  expect(text).toContain('app = "uid:shop"');
  expect(text).not.toContain('phk_');
});

it('a configuration that is a link stays one, of the user and of a project', () => {
  const [ofUser, ofProject] = [join(homeFolder, 'dotfiles.toml'), join(folder, 'shared.toml')];
  mkdirSync(join(homeFolder, '.config/posthorn'), { recursive: true });
  mkdirSync(join(folder, '.posthorn'));
  const links = [
    join(homeFolder, '.config/posthorn/config.toml'),
    join(folder, '.posthorn/config.toml'),
  ];
  symlinkSync(ofUser, links[0] ?? '');
  symlinkSync('../shared.toml', links[1] ?? '');
  storeProfiles();
  writeProjectProfile(folder, 'other');
  expect(links.map((link) => lstatSync(link).isSymbolicLink())).toEqual([true, true]);
  expect(readFileSync(ofUser, 'utf8')).toContain('phk_other');
  expect(statSync(ofUser).mode & 0o777).toBe(0o600);
  expect(readFileSync(ofProject, 'utf8')).toContain('profile = "other"');
  expect(find()).toMatchObject(OTHER);
});

it('a configuration may begin with a byte-order mark', () => {
  storeProfiles();
  writeProject('\uFEFFcredentials-file = "key.json"');
  writeFileSync(join(folder, 'key.json'), `\uFEFF${JSON.stringify(LOCAL)}`, { mode: 0o600 });
  expect(find()).toMatchObject({ apiKey: LOCAL.apiKey });
});

it('profiles are stored for the user alone, and read again as they were', () => {
  storeProfiles();
  const path = join(homeFolder, '.config/posthorn/config.toml');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path, 'utf8')).toContain('api-key = "phk_user"');
  const { current, profiles } = readUserConfig({ env: {}, folder, homeFolder });
  expect([current, Object.fromEntries(profiles)]).toEqual(['user', { user: USER, other: OTHER }]);
});
