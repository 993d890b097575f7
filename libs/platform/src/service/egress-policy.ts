import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import type { Cidr } from '@posthorn/domain/egress/ip-address.ts';

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
    allowCidrs: config.EGRESS_ALLOW_CIDRS ?? [],
    allowPorts: config.EGRESS_ALLOW_PORTS ?? null,
    denyCidrs: config.EGRESS_DENY_CIDRS ?? [],
    denyHosts: config.EGRESS_DENY_HOSTS ?? [],
  };
}
