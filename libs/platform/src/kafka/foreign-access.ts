import { clusterOf, type ForeignCluster } from '@posthorn/domain/ingest.ts';
import { followTlsFiles } from '../service/secure-context.ts';
import type { KafkaAccess } from './connect.ts';

/**
 * Returns how a cluster of other programs is reached, by its name (see clusterOf): as INGEST_CLUSTERS says, and else with TLS
 * and without a login. The login of the installation is sent to its own cluster only. Throws StartupError when its files
 * cannot be used.
 */
export function foreignAccessOf(
  clusters: readonly ForeignCluster[] | undefined,
  name: string,
): KafkaAccess {
  const found = clusters?.find((each) => clusterOf(each) === name);
  const { caFile: ca, certFile: cert, keyFile: key } = found ?? {};
  const { mechanism, username, password } = found ?? {};
  const hasLogin = mechanism !== undefined && username !== undefined && password !== undefined;
  return {
    brokers: name.split(','),
    tls: found?.tls === false ? null : followTlsFiles(`Kafka at ${name}`, { ca, cert, key }),
    sasl: hasLogin ? { mechanism, username, password } : null,
  };
}
