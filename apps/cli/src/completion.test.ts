import { describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runIn } from '../../../test/support/cli/printing-world.ts';

/** Runs a program of Debian that may be absent. */
function shell(name: string, ...args: string[]): string | null {
  const ended = spawnSync(name, args, { encoding: 'utf8', timeout: 60_000 });
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
  });

  it('in zsh completes commands, options and their values', async () => {
    const path = await script('zsh');
    // Words are completed where somebody types them: in a terminal of its own.
    const typed = 'posthorn webh\tget --show-s\tx; posthorn message list --status exh\t\n';
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
      zpty -w -n terminal '${typed}'
      zpty -r terminal printed '*ran<*>*ran<*>*'
      print -r -- $printed
      zpty -d terminal`,
    );
    if (ran === null) {
      process.stderr.write('NOT CHECKED: zsh is not installed\n');
      return;
    }
    expect(ran).toContain('ran<webhook get --show-secrets x>');
    expect(ran).toContain('ran<message list --status exhausted>');
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
