/*
 * node:net BlockList cannot replace this file: it finds an address in a range, but it gives no value of an
 * address (for the IPv4 address inside a NAT64 address, and for the /64 of a rate-limited client), accepts
 * ranges with host bits set, and matches IPv4-mapped IPv6 addresses against IPv4 ranges.
 */

/** An IP address as a number, with the width of its family in bits. */
export interface IpAddress {
  bits: 32 | 128;
  value: bigint;
}

export interface Cidr {
  bits: 32 | 128;
  base: bigint;
  prefixBits: number;
}

/** Reads an IPv4 or IPv6 address in its usual text forms, without its zone id; null for anything else. */
export function parseIp(text: string): IpAddress | null {
  const v4 = parseIpv4(text);
  if (v4 !== null) return { bits: 32, value: v4 };
  const v6 = parseIpv6(text.replace(/%.*$/, ''));
  return v6 === null ? null : { bits: 128, value: v6 };
}

const MAPPED_IPV4 = 0xffffn;

/** Returns the IPv4 address inside an IPv4-mapped IPv6 address (`::ffff:a.b.c.d`), any other address as it is. */
export function unmapped(address: IpAddress): IpAddress {
  const isMapped = address.bits === 128 && address.value >> 32n === MAPPED_IPV4;
  return isMapped ? { bits: 32, value: address.value & 0xffffffffn } : address;
}

/** Returns the one text form of an address: decimal for IPv4, RFC 5952 for IPv6. */
export function formatIp({ bits, value }: IpAddress): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
  const digits = value.toString(16).padStart(32, '0');
  const groups = digits.match(/.{4}/g) ?? [];
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/** Reads `10.0.0.0/8` or `fc00::/7`; null for anything else, such as `10.0.0.1/8`, whose host bits are set. */
export function parseCidr(text: string): Cidr | null {
  const match = /^([^/]+)\/(\d{1,3})$/.exec(text.trim());
  const address = match && parseIp(match[1] ?? '');
  const prefixBits = Number(match?.[2]);
  if (!address || prefixBits > address.bits) return null;
  const cidr = { bits: address.bits, base: address.value, prefixBits };
  return networkOf(address.value, cidr) === address.value ? cidr : null;
}

export function contains(cidr: Cidr, address: IpAddress): boolean {
  return cidr.bits === address.bits && networkOf(address.value, cidr) === cidr.base;
}

/** Reads ranges that are written in the source. Throws when one is not a range. */
export function cidrs(...texts: string[]): Cidr[] {
  return texts.map((text) => {
    const cidr = parseCidr(text);
    if (!cidr) throw new Error(`not a range: ${text}`);
    return cidr;
  });
}

function networkOf(value: bigint, cidr: { bits: number; prefixBits: number }): bigint {
  const hostBits = BigInt(cidr.bits - cidr.prefixBits);
  return (value >> hostBits) << hostBits;
}

function parseIpv4(text: string): bigint | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (!match) return null;
  const octets = match.slice(1).map(Number);
  if (octets.some((octet) => octet > 255)) return null;
  return octets.reduce((value, octet) => (value << 8n) | BigInt(octet), 0n);
}

function parseIpv6(text: string): bigint | null {
  const halves = expandIpv4Tail(text)?.split('::');
  if (!halves || halves.length > 2) return null;
  const [head, tail] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const groups = tail ? fill(head ?? [], tail) : head;
  if (groups?.length !== 8) return null;
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null;
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

function fill(head: string[], tail: string[]): string[] | undefined {
  const missing = 8 - head.length - tail.length;
  if (missing < 1) return undefined;
  return [...head, ...Array<string>(missing).fill('0'), ...tail];
}

/** Rewrites `::ffff:1.2.3.4` as `::ffff:102:304`; null when the IPv4 part is wrong. */
function expandIpv4Tail(text: string): string | null {
  if (!text.includes('.')) return text;
  const cut = text.lastIndexOf(':') + 1;
  const v4 = parseIpv4(text.slice(cut));
  if (v4 === null || cut === 0) return null;
  return `${text.slice(0, cut)}${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`;
}
