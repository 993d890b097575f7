import { describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runIn } from '../../../test/support/cli/printing-world.ts';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { writeUserConfig } from './profiles.ts';

/** Has two profiles. */
function createHome(): string {
  const home = scratchFolder();
  const profile = { url: 'https://posthorn.example.com', apiKey: 'phk_1' };
  writeUserConfig(
    { env: { XDG_CONFIG_HOME: home }, folder: '/', homeFolder: '/' },
    {
      current: 'default',
      profiles: new Map([
        ['default', profile],
        ['team-b', profile],
      ]),
    },
  );
  return home;
}

const home = createHome();

/** Runs a program of Debian that may be absent. */
function shell(name: string, ...args: string[]): string | null {
  const env = { ...process.env, XDG_CONFIG_HOME: home };
  const ended = spawnSync(name, args, { encoding: 'utf8', timeout: 60_000, env });
  const { error, stdout, stderr, status } = ended;
  if (error && 'code' in error && error.code === 'ENOENT') return null;
  expect({ name, status, stderr }).toEqual({ name, status: 0, stderr: '' });
  return stdout;
}

describe('completion', () => {
  const script = async (name: string): Promise<string> => {
    const { code, out } = await runIn(['completion', name]);
    expect(code).toBe(0);
    const path = join(tmpdir(), `posthorn-completion-${process.pid}.${name}`);
    writeFileSync(path, out);
    return path;
  };

  it('in bash completes commands and options', async () => {
    const path = await script('bash');
    const complete = (words: string): string =>
      shell(
        'bash',
        '--norc',
        '-c',
        `source ${path}; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); ` +
          `f=$(complete -p posthorn | sed -E 's/.*-F ([^ ]+).*/\\1/'); $f posthorn; echo "\${COMPREPLY[@]}"`,
      ) ?? 'absent';
    expect(complete('posthorn web')).toContain('webhook');
    expect(complete('posthorn message send --pay')).toContain('--payload');
    // A value is no command, and has known ones.
    expect(complete('posthorn --profile webhook mess')).toBe('message\n');
    expect(complete('posthorn message list --app app li')).toBe('\n');
    expect(complete('posthorn message list --status exh')).toBe('exhausted\n');
    expect(complete("posthorn message list --status '=' exh")).toBe('exhausted\n');
    expect(complete("posthorn --profile '=' webhook mess")).toBe('message\n');
    expect(complete("posthorn whoami --profile ''")).toBe('default team-b\n');
    expect(complete('posthorn profile use te')).toBe('team-b\n');
    expect(complete('posthorn completion zs')).toBe('zsh\n');
  });

  it('in fish completes commands and options', async () => {
    const path = await script('fish');
    const complete = (text: string): string | null =>
      shell('fish', '--no-config', '-c', `source ${path}; complete -C '${text}'`);
    const commands = complete('posthorn web');
    if (commands === null) {
      process.stderr.write('NOT CHECKED: fish is not installed\n');
      return;
    }
    expect(commands).toContain('webhook');
    expect(complete('posthorn message send --pay')).toContain('--payload');
    expect(complete('posthorn --profile webhook mess')).toContain('message');
    expect(complete('posthorn message list --status=exh')).toContain('exhausted');
    expect(complete('posthorn whoami --profile ')).toMatch(/^default\t.*\nteam-b\t.*\n$/);
    expect(complete('posthorn profile use te')).toBe('team-b\n');
    expect(complete('posthorn completion zs')).toBe('zsh\n');
  });

  it('in zsh completes commands, options and their values', async () => {
    const path = await script('zsh');
    // Words are completed where somebody types them: in a terminal of its own.
    const typed = [
      'posthorn webh\tget --show-s\tx',
      'posthorn message list --status exh\t',
      'posthorn --profile webhook mess\t',
      'posthorn message list --status=exh\t',
      'posthorn whoami --profile te\t',
      'posthorn profile use te\t',
    ].join('; ');
    const ran = shell(
      'zsh',
      '-f',
      '-c',
      `zmodload zsh/zpty
      zpty terminal zsh -f -i
      zpty -w terminal "autoload -Uz compinit; compinit -u -D; source ${path}"
      zpty -w terminal 'posthorn() { print -r -- "ran<$*>" }'
      zpty -w terminal 'zle-line-init() { print -n rea""dy }; zle -N zle-line-init'
      zpty -r terminal printed '*ready*'
      zpty -w -n terminal '${typed}\n'
      zpty -r terminal printed '${'*ran<*>'.repeat(6)}*'
      print -r -- $printed
      zpty -d terminal`,
    );
    if (ran === null) {
      process.stderr.write('NOT CHECKED: zsh is not installed\n');
      return;
    }
    expect(ran).toContain('ran<webhook get --show-secrets x>');
    expect(ran).toContain('ran<message list --status exhausted>');
    expect(ran).toContain('ran<--profile webhook message>');
    expect(ran).toContain('ran<message list --status=exhausted>');
    expect(ran).toContain('ran<whoami --profile team-b>');
    expect(ran).toContain('ran<profile use team-b>');
  });

  it.each([
    ['zsh', ['-n']],
    ['fish', ['--no-execute']],
  ])('is a script that %s can read', async (name, check) => {
    const path = await script(name);
    const checked = shell(name, ...check, path);
    if (checked === null) process.stderr.write(`NOT CHECKED: ${name} is not installed\n`);
  });
});
