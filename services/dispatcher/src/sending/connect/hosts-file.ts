import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

/** One address of a name, and for how many seconds its zone says that it may be used. */
export interface AddressRecord {
  address: string;
  ttl: number;
}

/** What this machine knows about names at one moment: its hosts file and its name servers. */
export interface MachineNames {
  /** By name, in lower case. */
  listed: ReadonlyMap<string, string[]>;
  resolve4: (hostname: string) => Promise<AddressRecord[]>;
  resolve6: (hostname: string) => Promise<AddressRecord[]>;
}

/** Two questions of 2 s to each name server: one that is silent must leave time for the attempt. */
const ASK = { timeout: 2_000, tries: 2 };

/** Reads /etc/hosts and /etc/resolv.conf anew; a machine without a hosts file lists no name. */
export async function readMachineNames(path = '/etc/hosts'): Promise<MachineNames> {
  const resolver = new Resolver(ASK);
  return {
    listed: parseHosts(await readFile(path, 'utf8').catch(() => '')),
    resolve4: (hostname) => resolver.resolve4(hostname, { ttl: true }),
    resolve6: (hostname) => resolver.resolve6(hostname, { ttl: true }),
  };
}

/** Reads hosts(5). Addresses with a zone (`fe80::1%lo0`) are link-local, never allowed, and left out. */
export function parseHosts(text: string): Map<string, string[]> {
  const byName = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    if (isIP(address) === 0 || address.includes('%')) continue;
    for (const name of names) byName.set(name, [...(byName.get(name) ?? []), address]);
  }
  return byName;
}
