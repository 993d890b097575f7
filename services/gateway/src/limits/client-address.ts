import { formatIp, parseIp, unmapped } from '@posthorn/domain/egress.ts';
import type { Express } from 'express';
import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';

/**
 * Makes `request.ip` the address that limits count, and that audit log and logs show. Express would return the text
 * of a proxy as it is: with a port in it, each connection of a client would be another address.
 */
export function useClientAddress(app: Express, trustedProxies: number): void {
  Object.defineProperty(app.request, 'ip', {
    configurable: true,
    get(this: IncomingMessage) {
      const value = clientAddress(this, trustedProxies);
      // A request is asked three times, and an IPv6 address takes 4 µs.
      Object.defineProperty(this, 'ip', { value });
      return value;
    },
  });
}

/**
 * Returns the address of the client, in its one text form (an IPv4 address is never an IPv4-mapped IPv6 address);
 * undefined when the connection is closed already. Each trusted proxy names the peer that it got the request from,
 * the nearest proxy last. The first entry that is missing or is no address ends the walk: the proxy that wrote it is
 * the last one known, and all clients behind it are one address.
 */
export function clientAddress(
  { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
  trustedProxies: number,
): string | undefined {
  let known = textOf(socket.remoteAddress ?? '');
  if (trustedProxies === 0) return known;
  // Node joins several headers of this name with commas.
  const forwarded = String(headers['x-forwarded-for'] ?? '').split(',');
  const nearestFirst = forwarded.map((entry) => entry.trim()).filter((entry) => entry !== '');
  for (const entry of nearestFirst.reverse().slice(0, trustedProxies)) {
    const named = addressOfNode(entry);
    if (named === undefined) break;
    known = named;
  }
  return known;
}

const MAPPED = '::ffff:';
/** The port may be a name that a proxy made up: RFC 7239, section 6. */
const PORT = '(?::(?:\\d{1,5}|_[\\w.-]+))?';
const IN_BRACKETS = new RegExp(`^\\[([^\\]]+)\\]${PORT}$`);
const IPV4 = new RegExp(`^([\\d.]+)${PORT}$`);

/** Reads `192.0.2.7`, `192.0.2.7:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`, and each of them in quotes. */
function addressOfNode(entry: string): string | undefined {
  const node = entry.replace(/^"(.*)"$/, '$1');
  return textOf(IN_BRACKETS.exec(node)?.[1] ?? IPV4.exec(node)?.[1] ?? node);
}

function textOf(text: string): string | undefined {
  // Without these two an address of a gateway that listens on `::` takes 2.5 µs.
  if (isIPv4(text)) return text;
  if (text.startsWith(MAPPED) && isIPv4(text.slice(MAPPED.length)))
    return text.slice(MAPPED.length);
  const address = parseIp(text);
  return address ? formatIp(unmapped(address)) : undefined;
}

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
