import { parseIp } from '@posthorn/domain/egress/ip-address.ts';

const MAPPED_IPV4 = '::ffff:';
const LONGEST_CHARS = 45;

/**
 * Who is limited as one: an IPv4 address, or an IPv6 network of 64 bits, which is what one customer
 * holds. What a proxy forwards and is no address counts by its text.
 */
export function addressKey(ip = 'unknown'): string {
  if (!ip.includes(':')) return ip.slice(0, LONGEST_CHARS);
  if (ip.startsWith(MAPPED_IPV4)) return ip.slice(MAPPED_IPV4.length, LONGEST_CHARS);
  const address = parseIp(ip);
  return address ? `${(address.value >> 64n).toString(16)}/64` : ip.slice(0, LONGEST_CHARS);
}
