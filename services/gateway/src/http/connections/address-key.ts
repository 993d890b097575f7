import { parseIp } from '@posthorn/domain/egress/ip-address.ts';

const MAPPED_IPV4 = '::ffff:';
const MAX_ADDRESS_CHARS = 45;

/**
 * Returns the key under which the requests of a client address are counted: an IPv4 address, or the /64
 * network of an IPv6 address, because one client holds a whole /64. Text that a proxy forwards and that
 * is not an address is its own key.
 */
export function addressKey(ip = 'unknown'): string {
  if (!ip.includes(':')) return ip.slice(0, MAX_ADDRESS_CHARS);
  if (ip.startsWith(MAPPED_IPV4)) return ip.slice(MAPPED_IPV4.length, MAX_ADDRESS_CHARS);
  const address = parseIp(ip);
  return address ? `${(address.value >> 64n).toString(16)}/64` : ip.slice(0, MAX_ADDRESS_CHARS);
}
