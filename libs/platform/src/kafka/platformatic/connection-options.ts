import { SASLMechanisms, type ConnectionOptions, type SASLOptions } from '@platformatic/kafka';
import type { KafkaAccess, Sasl } from '../connection/access.ts';

type SecurityOptions = Pick<ConnectionOptions, 'tls' | 'tlsServerName' | 'sasl'>;

/** TLS and login of the connections of this package. */
export function securityOf({ tls, sasl }: KafkaAccess): SecurityOptions {
  return {
    ...(tls && { tls: { secureContext: tls }, tlsServerName: true }),
    ...(sasl && { sasl: loginOf(sasl) }),
  };
}

const MECHANISMS = {
  plain: SASLMechanisms.PLAIN,
  'scram-sha-256': SASLMechanisms.SCRAM_SHA_256,
  'scram-sha-512': SASLMechanisms.SCRAM_SHA_512,
} as const;

function loginOf(sasl: Sasl): SASLOptions {
  if (sasl.mechanism === 'oauthbearer') {
    return { mechanism: SASLMechanisms.OAUTHBEARER, token: sasl.readToken };
  }
  const { mechanism, username, password } = sasl;
  return { mechanism: MECHANISMS[mechanism], username, password };
}
