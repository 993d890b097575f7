import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { runIn } from '../../../test/support/cli/printing-world.ts';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { readText, replaceFile } from './files.ts';

let folder: string;
const inFolder = (name: string): string => join(folder, name);

beforeEach(() => {
  folder = scratchFolder();
});

describe('a file that is replaced', () => {
  it.each([
    ['a link to it', ['/dotfiles/real']],
    ['a link from its folder', ['dotfiles/real']],
    ['links in a row', ['dotfiles/next', '../dotfiles/real']],
  ])('keeps %s, and its mode', (_what, [first = '', second]) => {
    mkdirSync(inFolder('dotfiles'));
    writeFileSync(inFolder('dotfiles/real'), 'before', { mode: 0o640 });
    if (second !== undefined) symlinkSync(second, inFolder('dotfiles/next'));
    const target = first.startsWith('/') ? inFolder(first) : first;
    symlinkSync(target, inFolder('link'));
    replaceFile(inFolder('link'), 'after');
    expect(readlinkSync(inFolder('link'))).toBe(target);
    expect(lstatSync(inFolder('dotfiles/real')).isFile()).toBe(true);
    expect(readFileSync(inFolder('dotfiles/real'), 'utf8')).toBe('after');
    expect(statSync(inFolder('dotfiles/real')).mode & 0o777).toBe(0o640);
    expect(readdirSync(folder).sort()).toEqual(['dotfiles', 'link']);
  });

  it('is made where a link leads to none', () => {
    symlinkSync('real', inFolder('link'));
    replaceFile(inFolder('link'), 'first');
    expect(readlinkSync(inFolder('link'))).toBe('real');
    expect(readFileSync(inFolder('real'), 'utf8')).toBe('first');
  });

  it('gets the mode that is asked for, whatever it had', () => {
    writeFileSync(inFolder('file'), 'before');
    chmodSync(inFolder('file'), 0o644);
    replaceFile(inFolder('file'), 'after', 0o600);
    expect(statSync(inFolder('file')).mode & 0o777).toBe(0o600);
  });

  it('is not one of the user that a link of somebody else leads to [security]', () => {
    writeFileSync(inFolder('mine'), 'before');
    symlinkSync('mine', inFolder('link'));
    if (process.getuid?.() === 0) lchownSync(inFolder('link'), 12_345, 12_345);
    const userId = process.getuid;
    // Without the rights to give a link away, the test is somebody else itself.
    if (userId?.() !== 0) process.getuid = () => 12_345;
    try {
      expect(() => {
        replaceFile(inFolder('link'), 'after');
      }).toThrow('is a link of another user, and is not followed');
    } finally {
      if (userId) process.getuid = userId;
    }
    expect(readFileSync(inFolder('mine'), 'utf8')).toBe('before');
  });

  it.each([
    ['links that lead to each other', 'link', 'ELOOP'],
    ['a folder that is not there', 'none/file', 'ENOENT'],
    ['a folder in its place', 'folder', 'EISDIR'],
  ])('cannot be written: %s', (_what, name, code) => {
    symlinkSync('link', inFolder('link'));
    mkdirSync(inFolder('folder'));
    expect(() => {
      replaceFile(inFolder(name), 'after');
    }).toThrow(`Cannot write ${inFolder(name)}: ${code}`);
    expect(readdirSync(folder).sort()).toEqual(['folder', 'link']);
  });
});

const MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const marked = (text: string): Buffer => Buffer.concat([MARK, Buffer.from(text)]);

describe('a file that is read', () => {
  it('has no byte-order mark', () => {
    writeFileSync(inFolder('file'), marked('a\r\nb'));
    expect(readText(inFolder('file'))).toBe('a\r\nb');
  });

  it.each([
    ['UTF-16', Buffer.from('\uFEFF{}', 'utf16le'), 'is UTF-16, not UTF-8: save it as UTF-8'],
    ['UTF-16 of the other order', Buffer.from('\uFEFF{}', 'utf16le').swap16(), 'is UTF-16'],
    ['Latin-1', Buffer.from('"ä"', 'latin1'), 'is not UTF-8'],
  ])('is refused with its reason when it is %s', (_what, bytes, reason) => {
    writeFileSync(inFolder('file'), bytes);
    expect(() => readText(inFolder('file'), 'the file')).toThrow(`the file ${reason}`);
  });
});

describe('a command takes a file or input of Windows', () => {
  const WEBHOOK = '{"appId":"a1","url":"https://a.example.com/"}';
  const BODY = `{"method":"POST","url":"http://127.0.0.1:1/api/v1/webhooks","body":${WEBHOOK}}\n`;

  it.each([
    ['JSON', WEBHOOK],
    ['JSON with CR LF', WEBHOOK.replace(',', ',\r\n')],
    ['YAML', 'appId: a1\r\nurl: https://a.example.com/\r\n'],
  ])('that has a webhook in %s', async (_what, text) => {
    writeFileSync(inFolder('webhook'), marked(text));
    const create = ['webhook', 'create', '--dry-run', '--json', '--file'];
    expect(await runIn([...create, inFolder('webhook')])).toMatchObject({ code: 0, out: BODY });
    const piped = await runIn([...create, '-'], {}, `\uFEFF${text}`);
    expect(piped).toMatchObject({ code: 0, out: BODY });
  });

  it('that has a payload', async () => {
    writeFileSync(inFolder('event.json'), marked('{"order": 17}\r\n'));
    const send = ['message', 'send', '--app', 'a1', '--dry-run', '--json'];
    const body = '"body":{"appId":"a1","payload":{"order": 17}';
    const { out } = await runIn([...send, '--file', inFolder('event.json')]);
    expect(out).toContain(body);
    expect((await runIn([...send, '--stdin'], {}, '\uFEFF{"order": 17}')).out).toContain(body);
  });

  it('and names the mark before a body whose signature is no longer good', async () => {
    writeFileSync(inFolder('body.json'), marked('{}'));
    const args = ['signature', 'verify', '--file', inFolder('body.json'), '--secret-env', 'S'];
    const now = Math.floor(Date.now() / 1_000);
    const headers = [
      'webhook-id: msg_1',
      `webhook-timestamp: ${now}`,
      'webhook-signature: v1,AA==',
    ];
    const given = headers.flatMap((header) => ['--header', header]);
    const { code, err } = await runIn([...args, ...given], { S: `whsec_${'A'.repeat(32)}` });
    expect({ code, err }).toEqual({ code: 5, err: expect.stringContaining('byte-order mark') });
  });
});
