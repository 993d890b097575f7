/** Where deliveries may go. An address that is not public is refused unless it is allowed here. */
export interface EgressPolicy {
  /** Refused whatever else is allowed, such as the operator's own public addresses. */
  denyCidrs: readonly Cidr[];
  /** Names in lower case; `*.example.com` stands for every name under example.com. Refused as above. */
  denyHosts: readonly string[];
  /** The only ports that deliveries may go to; null for all that are not of infrastructure. */
  allowPorts: readonly number[] | null;
  allowLoopback: boolean;
  /** Plain http; off in production, where only https is allowed. */
  allowHttp: boolean;
  /** Private ranges that the operator allows. Link-local and metadata addresses stay refused. */
  allowCidrs: readonly Cidr[];
}

/** Only https to public addresses. */
export const STRICT_EGRESS: EgressPolicy = {
  denyCidrs: [],
  denyHosts: [],
  allowPorts: null,
  allowLoopback: false,
  allowHttp: false,
  allowCidrs: [],
};

/** The parts of a URL that can be refused. The values are labels of `posthorn_egress_blocked_total`. */
export const EGRESS_REFUSALS = ['scheme', 'host', 'port', 'address'] as const;

export type EgressRefusal = (typeof EGRESS_REFUSALS)[number];

const LOOPBACK = cidrs('127.0.0.0/8', '::1/128');

/**
 * Never allowed, whatever EGRESS_ALLOW_CIDRS says: link-local addresses, the metadata services of
 * clouds, and IPv4-mapped IPv6 addresses (a socket connects to the IPv4 address inside).
 */
// prettier-ignore
const NEVER = cidrs(
  '169.254.0.0/16', '168.63.129.16/32',
  // Alibaba Cloud and Oracle Cloud have theirs outside the link-local range.
  '100.100.100.200/32', '192.0.0.192/32',
  'fe80::/10', 'fd00:ec2::/32', 'fd20:ce::/32', '::ffff:0:0/96',
);

/** IANA special-purpose registries (RFC 6890 and its updates). */
// prettier-ignore
const REFUSED_V4 = cidrs(
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16',
  '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24',
  '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15',
  '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32',
);

/** Only global unicast is public, without the ranges below. */
const PUBLIC_V6 = cidrs('2000::/3');
// prettier-ignore
const REFUSED_V6 = cidrs(
  '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20', '2620:4f:8000::/48',
);
const NAT64 = cidrs('64:ff9b::/96');

/** `URL` leaves more in a host than a URL may have there (RFC 3986, 3.2.2), such as `{`. */
const HOST = /^[A-Za-z0-9\-._~!$&'()*+,;=]*$/;
const REFUSED_SUFFIX = /(^|\.)(local|internal|localhost|svc|cluster\.local|home\.arpa|onion)$/;

/** Ports of infrastructure that may react to anything that looks like HTTP, and port 0. */
// prettier-ignore
const REFUSED_PORTS = new Set([
  0, 21, 22, 23, 25, 53, 110, 111, 135, 139, 143, 389, 445, 465, 514, 587, 636, 1433, 2049, 2181,
  2375, 2376, 2379, 2380, 3306, 3389, 4001, 5432, 5672, 6379, 6443, 8500, 9092, 9200, 9300,
  10250, 10255, 11211, 16379, 27017, 27018,
]);

const DEFAULT_PORTS: Record<string, number | undefined> = { 'http:': 80, 'https:': 443 };

/** Checks a URL before any DNS look-up. An IP literal is checked as an address. Null when allowed. */
export function refusalOfUrl(url: URL, policy: EgressPolicy): EgressRefusal | null {
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && policy.allowHttp)) return 'scheme';
  if (isRefusedPort(url, policy)) return 'port';
  return refusalOfHost(url.hostname, policy);
}

/** Checks a host as `new URL` spells it: in lower case, IPv6 in brackets. Null when allowed. */
export function refusalOfHost(hostname: string, policy: EgressPolicy): EgressRefusal | null {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
  if (parseIp(host)) return refusalOfAddress(host, policy);
  if (!HOST.test(host)) return 'host';
  if (policy.denyHosts.some((denied) => isNamedBy(denied, host))) return 'host';
  if (policy.allowLoopback && host === 'localhost') return null;
  return !host.includes('.') || REFUSED_SUFFIX.test(host) ? 'host' : null;
}

function isRefusedPort({ protocol, port }: URL, { allowPorts }: EgressPolicy): boolean {
  const number = port === '' ? DEFAULT_PORTS[protocol] : Number(port);
  if (number === undefined || REFUSED_PORTS.has(number)) return true;
  return allowPorts !== null && !allowPorts.includes(number);
}

function isNamedBy(denied: string, host: string): boolean {
  return denied.startsWith('*.') ? host.endsWith(denied.slice(1)) : host === denied;
}

/** Checks one address: a literal, a DNS result, or the far end of an open socket. Null when allowed. */
export function refusalOfAddress(text: string, policy: EgressPolicy): EgressRefusal | null {
  const address = parseIp(text);
  return address && isAllowed(address, policy) ? null : 'address';
}

function isAllowed(address: IpAddress, policy: EgressPolicy): boolean {
  if (within(NEVER, address) || within(policy.denyCidrs, address)) return false;
  if (within(LOOPBACK, address)) return policy.allowLoopback;
  // Before the allowed ranges: `::/0` must not allow the metadata service behind a translator.
  if (within(NAT64, address)) {
    return isAllowed({ bits: 32, value: address.value & 0xffffffffn }, policy);
  }
  if (within(policy.allowCidrs, address)) return true;
  if (address.bits === 32) return !within(REFUSED_V4, address);
  return within(PUBLIC_V6, address) && !within(REFUSED_V6, address);
}

function within(ranges: readonly Cidr[], address: IpAddress): boolean {
  return ranges.some((range) => contains(range, address));
}

/*
 * node:net BlockList cannot replace this file: it finds an address in a range, but it gives no value of an
 * address (for the IPv4 address inside a NAT64 address, and for the /64 of a rate-limited client), accepts
 * ranges with host bits set, and matches IPv4-mapped IPv6 addresses against IPv4 ranges.
 */

/** An IP address as a number, with the width of its family in bits. */
interface IpAddress {
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
