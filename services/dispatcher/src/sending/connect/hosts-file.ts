import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

/** An address of a host. */
export interface AddressRecord {
  address: string;
  /** Seconds for which it may be cached. */
  ttl: number;
}

/** The host names of this machine as it is configured now: its hosts file and its name servers. */
export interface SystemNames {
  /** Addresses by name in lower case. */
  hostsFile: ReadonlyMap<string, string[]>;
  resolve4: (hostname: string) => Promise<AddressRecord[]>;
  resolve6: (hostname: string) => Promise<AddressRecord[]>;
}

/** Each name server is asked twice, for 2 s, so that a silent one leaves time for the attempt. */
const RESOLVER_OPTIONS = { timeout: 2_000, tries: 2 };

/** Reads /etc/hosts and /etc/resolv.conf. A missing hosts file counts as empty. */
export async function readSystemNames(path = '/etc/hosts'): Promise<SystemNames> {
  const resolver = new Resolver(RESOLVER_OPTIONS);
  return {
    hostsFile: parseHosts(await readFile(path, 'utf8').catch(() => '')),
    resolve4: (hostname) => resolver.resolve4(hostname, { ttl: true }),
    resolve6: (hostname) => resolver.resolve6(hostname, { ttl: true }),
  };
}

/** Parses hosts(5). Leaves out addresses with a zone (`fe80::1%lo0`), which are link-local and never allowed. */
export function parseHosts(text: string): Map<string, string[]> {
  const byName = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    if (isIP(address) === 0 || address.includes('%')) continue;
    for (const name of names) byName.set(name, [...(byName.get(name) ?? []), address]);
  }
  return byName;
}
