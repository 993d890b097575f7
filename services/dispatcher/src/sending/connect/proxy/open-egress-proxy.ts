import { followTlsFiles } from '@posthorn/platform/tls/secure-context.ts';
import type { DispatcherConfig } from '../../../config.ts';
import type { TunnelResult } from './judge-answer.ts';
import { openProxy, type EgressProxy } from './open-proxy.ts';

/**
 * Shares of DELIVERY_TIMEOUT_MS. Together they are less than the whole, so that a proxy that hangs is
 * recognized before the attempt itself times out, which would be charged to the endpoint.
 */
const CONNECT_SHARE = 0.2;
const ANSWER_SHARE = 0.5;
const PROBE_SHARE = 0.1;

/** Returns the proxy of the settings; null when there is none. Throws StartupError when its CA cannot be read. */
export function openEgressProxy(
  config: Pick<
    DispatcherConfig,
    'EGRESS_PROXY_URL' | 'EGRESS_PROXY_CA_FILE' | 'EGRESS_PROXY_TARGET' | 'DELIVERY_TIMEOUT_MS'
  >,
  onResult: (result: TunnelResult) => void,
): EgressProxy | null {
  const {
    EGRESS_PROXY_URL: url,
    EGRESS_PROXY_CA_FILE: caFile,
    DELIVERY_TIMEOUT_MS: wholeMs,
  } = config;
  if (!url) return null;
  return openProxy({
    url,
    tls: caFile ? followTlsFiles('the egress proxy', { ca: caFile }) : null,
    target: config.EGRESS_PROXY_TARGET,
    connectTimeoutMs: Math.ceil(wholeMs * CONNECT_SHARE),
    answerTimeoutMs: Math.ceil(wholeMs * ANSWER_SHARE),
    probeTimeoutMs: Math.ceil(wholeMs * PROBE_SHARE),
    onResult,
  });
}
