import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer, type SecureContext, type Server } from 'node:tls';
import {
  authority,
  issuedBy,
  selfSigned,
  type SelfSigned,
} from '../../../../test/support/receivers/self-signed.ts';
import { StartupError } from './errors.ts';
import { followTlsFiles } from './secure-context.ts';

const first = selfSigned('localhost');
const second = selfSigned('localhost');

let dir: string;
let server: Server;
let changes: number;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-tls-'));
  changes = 0;
});

afterEach(() => {
  server.close();
  rmSync(dir, { recursive: true });
});

/** Writes a file with a time of its own: two writes may fall into one tick of the clock of the file system. */
function write(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  changes += 1;
  utimesSync(path, changes, changes);
  return path;
}

async function serve({ key, cert }: SelfSigned, trusted?: string): Promise<number> {
  const mutual = trusted === undefined ? {} : { requestCert: true, ca: trusted };
  server = createServer({ key, cert, ...mutual }, (socket) => socket.end('welcome'));
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Resolves with what the server says; rejects when either side does not trust the other. */
async function greetingOf(port: number, secureContext: SecureContext): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', secureContext });
  const chunks = await socket.toArray();
  return Buffer.concat(chunks as Buffer[]).toString();
}

describe('the TLS context of a store', () => {
  test('trusts the CA in the file, and after a change of the file the other one', async () => {
    const ca = write('ca.pem', second.cert);
    const context = followTlsFiles('Kafka', { ca });
    const port = await serve(first);
    await expect(greetingOf(port, context)).rejects.toThrow(/self-signed/);
    write('ca.pem', first.cert);
    expect(await greetingOf(port, context)).toBe('welcome');
  });

  test('trusts an intermediate authority in the file, without its root', async () => {
    const intermediate = authority('intermediate', authority('root'));
    const { key, cert } = issuedBy(intermediate, 'localhost');
    const port = await serve({ key, cert: cert + intermediate.cert });
    const context = followTlsFiles('Kafka', { ca: write('ca.pem', intermediate.cert) });
    expect(await greetingOf(port, context)).toBe('welcome');
  });

  test('takes a renewed certificate once its key is renewed too', async () => {
    const [ca, cert, key] = [
      write('ca.pem', first.cert),
      write('cert.pem', first.cert),
      write('key.pem', first.key),
    ];
    const context = followTlsFiles('Kafka', { ca, cert, key });
    const port = await serve(first, first.cert);
    expect(await greetingOf(port, context)).toBe('welcome');
    write('cert.pem', second.cert);
    expect(await greetingOf(port, context)).toBe('welcome');
    write('key.pem', second.key);
    // The server refuses it; with TLS 1.3 a client learns that as the end of the stream, or as an error.
    expect(await greetingOf(port, context).catch(() => '')).toBe('');
  });

  test('needs readable files at the start', async () => {
    await serve(first);
    const missing = { ca: join(dir, 'none.pem') };
    expect(() => followTlsFiles('Kafka', missing)).toThrow(StartupError);
    const mixed = { cert: write('cert.pem', first.cert), key: write('key.pem', second.key) };
    expect(() => followTlsFiles('Kafka', mixed)).toThrow('The TLS files of Kafka cannot be used');
  });
});
