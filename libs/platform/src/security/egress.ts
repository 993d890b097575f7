import { type Cidr, type EgressPolicy, STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { isCredential } from '@posthorn/domain/field-types.ts';
import { z } from 'zod';

/** Returns the egress settings of a service as the domain's policy. */
export function egressPolicyOf(config: {
  EGRESS_ALLOW_LOOPBACK: boolean;
  EGRESS_ALLOW_HTTP: boolean;
  EGRESS_ALLOW_CIDRS?: Cidr[] | undefined;
  EGRESS_ALLOW_PORTS?: number[] | undefined;
  EGRESS_DENY_CIDRS?: Cidr[] | undefined;
  EGRESS_DENY_HOSTS?: string[] | undefined;
}): EgressPolicy {
  return {
    allowLoopback: config.EGRESS_ALLOW_LOOPBACK,
    allowHttp: config.EGRESS_ALLOW_HTTP,
    allowCidrs: config.EGRESS_ALLOW_CIDRS ?? STRICT_EGRESS.allowCidrs,
    allowPorts: config.EGRESS_ALLOW_PORTS ?? STRICT_EGRESS.allowPorts,
    denyCidrs: config.EGRESS_DENY_CIDRS ?? STRICT_EGRESS.denyCidrs,
    denyHosts: config.EGRESS_DENY_HOSTS ?? STRICT_EGRESS.denyHosts,
  };
}

const proxyUrlMessage =
  'must be http://host:port or https://host:port, with user:password@ if needed';
/** The messages do not contain the value: it may have a password. */
const proxyUrl = z
  .string()
  .refine(isProxyUrl, { message: proxyUrlMessage })
  .transform((text) => new URL(text));

function isProxyUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol)) return false;
  if (url.pathname !== '/' || url.search || url.hash) return false;
  try {
    return isCredential(decodeURIComponent(url.username + url.password));
  } catch {
    return false;
  }
}

/** The proxy that deliveries go through. */
export const egressProxySettings = {
  EGRESS_PROXY_URL: proxyUrl
    .optional()
    .describe(
      'HTTP CONNECT proxy that deliveries go through, http://user:password@host:port or https://…; without it, they go directly',
    ),
  EGRESS_PROXY_CA_FILE: z
    .string()
    .optional()
    .describe('PEM file with the CA of an https proxy; without it, the CAs that Node trusts'),
  EGRESS_PROXY_TARGET: z
    .enum(['address', 'name'], 'must be address or name')
    .default('address')
    .describe(
      'What the proxy is asked to connect to: an address that was checked here, or the host name, for a proxy that filters by name; then the proxy must refuse private addresses',
    ),
};
