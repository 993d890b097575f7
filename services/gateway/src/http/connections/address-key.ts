import { formatIp, parseIp, unmapped } from '@posthorn/domain/egress/ip-address.ts';
import { isIPv4 } from 'node:net';

/**
 * Returns the key under which the requests of a client address are counted: an IPv4 address, or the /64
 * network of an IPv6 address, because one client holds a whole /64. Everything that is no address has one key
 * together: a client that makes up texts must not get a key for each.
 */
export function addressKey(ip = ''): string {
  if (isIPv4(ip)) return ip;
  const parsed = parseIp(ip);
  if (!parsed) return 'unknown';
  const { bits, value } = unmapped(parsed);
  return bits === 32 ? formatIp({ bits, value }) : `${(value >> 64n).toString(16)}/64`;
}
