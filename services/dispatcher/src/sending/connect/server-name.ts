import { isIP } from 'node:net';

/**
 * The name that the TLS handshake sends is without the dot at the end of a URL's host (RFC 6066, section 3): servers
 * written in Go refuse it otherwise. An address is not sent.
 */
export function serverNameOf(hostname: string): string {
  return isIP(hostname) ? '' : hostname.replace(/\.+$/, '');
}
