import { StartupError } from '../errors.ts';

/** The settings that tell whether a store is reached with TLS. A process has those of its stores. */
interface StoreConfig {
  ALLOW_PLAINTEXT_STORES?: boolean;
  KAFKA_BROKERS?: readonly string[];
  KAFKA_SSL?: boolean;
  MONGODB_URL?: string;
  MONGODB_TLS_CA_FILE?: string | undefined;
  MONGODB_TLS_CERT_FILE?: string | undefined;
  MONGODB_TLS_KEY_FILE?: string | undefined;
  REDIS_URL?: string;
}

/**
 * Throws StartupError in production when a store would be reached without TLS: payloads, and what may
 * be sent to whom, would cross the network readable and changeable.
 */
export function assertNoPlaintextStores(config: StoreConfig, env: NodeJS.ProcessEnv): void {
  if (env.NODE_ENV !== 'production' || config.ALLOW_PLAINTEXT_STORES) return;
  const plaintext = plaintextStoresOf(config);
  if (plaintext.length === 0) return;
  throw new StartupError(
    [
      'Posthorn cannot start: NODE_ENV is production, and stores would be reached without TLS:',
      ...plaintext.map((how) => `  ${how}`),
      'Set ALLOW_PLAINTEXT_STORES=true where the network between them is trusted. docs/security.md says more.',
    ].join('\n'),
  );
}

/** How each store without TLS can be given it. */
export function plaintextStoresOf(config: StoreConfig): string[] {
  const { KAFKA_BROKERS, KAFKA_SSL, REDIS_URL } = config;
  const found: string[] = [];
  if (KAFKA_BROKERS && !KAFKA_SSL) found.push('Kafka: set KAFKA_SSL=true');
  const mongodb = plaintextMongodb(config);
  if (mongodb !== null) found.push(`MongoDB: ${mongodb}`);
  if (REDIS_URL?.startsWith('redis:')) found.push('Redis: begin REDIS_URL with rediss://');
  return found;
}

/** Null when there is TLS, and its certificates are checked. */
function plaintextMongodb({
  MONGODB_URL: url,
  MONGODB_TLS_CA_FILE,
  MONGODB_TLS_CERT_FILE,
  MONGODB_TLS_KEY_FILE,
}: StoreConfig): string | null {
  if (url === undefined) return null;
  const options = mongodbOptionsOf(url);
  const insecure = UNCHECKED.find((name) => options.get(name) === 'true');
  if (insecure !== undefined) return `remove ${insecure} from MONGODB_URL`;
  if (MONGODB_TLS_CA_FILE ?? MONGODB_TLS_CERT_FILE ?? MONGODB_TLS_KEY_FILE) return null;
  // `mongodb+srv` has TLS unless the URL says otherwise.
  const tls = options.get('tls') ?? options.get('ssl');
  const isTls = tls === undefined ? url.startsWith('mongodb+srv:') : tls === 'true';
  return isTls ? null : 'end MONGODB_URL with tls=true, or set MONGODB_TLS_CA_FILE';
}

/** With these the certificate of the server may be anybody's. */
const UNCHECKED = ['tlsinsecure', 'tlsallowinvalidcertificates', 'tlsallowinvalidhostnames'];

/** The names of options may be written in any case; these are in lower case. */
function mongodbOptionsOf(url: string): Map<string, string> {
  const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
  const options = [...new URLSearchParams(query)];
  return new Map(options.map(([name, value]) => [name.toLowerCase(), value]));
}
