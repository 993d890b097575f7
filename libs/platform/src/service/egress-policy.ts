import { type Cidr, type EgressPolicy, STRICT_EGRESS } from '@posthorn/domain/egress.ts';

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
