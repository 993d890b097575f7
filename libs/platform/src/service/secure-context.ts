import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { messageOf, StartupError } from './errors.ts';

/** Paths of PEM files. Without `ca`, the certificates that Node trusts. `cert` and `key` go together. */
interface TlsFiles {
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
}

/**
 * Options that trust these authorities only. Any of them is trusted as it is, also an intermediate one or the
 * certificate of a server itself: by default OpenSSL goes on to a self-signed root, and refuses every server when the
 * root is not among them.
 */
export function trustingOnly(
  ca: string | Buffer,
): Required<Pick<SecureContextOptions, 'ca' | 'allowPartialTrustChain'>> {
  return { ca, allowPartialTrustChain: true };
}

interface Loaded {
  stamp: string;
  native: unknown;
}

/**
 * The TLS context of the connections to one store, or to the egress proxy. Its files are read again when a connection
 * is opened and one of them has changed, so that renewed certificates need no restart. While they cannot be used, for
 * example between the renewal of a certificate and of its key, the former ones stay in use. Throws StartupError when
 * they cannot be used at the start; `name` is that of the store.
 */
export function followTlsFiles(name: string, files: TlsFiles): SecureContext {
  let loaded: Loaded;
  try {
    loaded = load(files);
  } catch (error) {
    throw new StartupError(
      `The TLS files of ${name} cannot be used: ${messageOf(error)}. Correct the settings, or the files.`,
    );
  }
  const context = createSecureContext();
  // The TLS sockets of every client take this property, each time that they connect.
  Object.defineProperty(context, 'context', {
    get() {
      loaded = reload(files, loaded);
      return loaded.native;
    },
  });
  return context;
}

function reload(files: TlsFiles, loaded: Loaded): Loaded {
  try {
    return stampOf(files) === loaded.stamp ? loaded : load(files);
  } catch {
    return loaded;
  }
}

function load(files: TlsFiles): Loaded {
  if ((files.cert === undefined) !== (files.key === undefined)) {
    throw new Error('a certificate needs its key, and a key its certificate');
  }
  const stamp = stampOf(files);
  const read = (path: string | undefined): Buffer | undefined =>
    path === undefined ? undefined : readFileSync(path);
  const ca = read(files.ca);
  const context = createSecureContext({
    ...(ca && trustingOnly(ca)),
    cert: read(files.cert),
    key: read(files.key),
  });
  return { stamp, native: context.context as unknown };
}

/** Changes when a file does. */
function stampOf({ ca, cert, key }: TlsFiles): string {
  const stamps = [ca, cert, key].map((path) => {
    if (path === undefined) return '';
    const { mtimeMs, ino, size } = statSync(path);
    return `${mtimeMs}/${ino}/${size}`;
  });
  return stamps.join();
}
