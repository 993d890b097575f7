import { readFile } from 'node:fs/promises';
import type { SecureContext } from 'node:tls';
import type { z } from 'zod';
import { StartupError } from '../../service/errors.ts';
import type { kafkaAccess } from '../../service/store-settings.ts';
import { followTlsFiles } from '../../service/secure-context.ts';

export type KafkaAccessConfig = z.infer<z.ZodObject<typeof kafkaAccess>>;

/** How a client logs in. The token is asked for with each connection. */
export type Sasl =
  | {
      mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
      username: string;
      password: string;
    }
  | { mechanism: 'oauthbearer'; readToken: () => Promise<string> };

/** How the brokers are reached. */
export interface KafkaAccess {
  brokers: string[];
  /** Null without TLS. */
  tls: SecureContext | null;
  /** Null without a login. */
  sasl: Sasl | null;
}

/** Throws StartupError when settings are missing, contradict each other, or name unusable files. */
export function kafkaAccessOf(config: KafkaAccessConfig): KafkaAccess {
  return { brokers: config.KAFKA_BROKERS, tls: tlsOf(config), sasl: saslOf(config) };
}

function tlsOf({
  KAFKA_SSL: isTls,
  KAFKA_SSL_CA_FILE: ca,
  KAFKA_SSL_CERT_FILE: cert,
  KAFKA_SSL_KEY_FILE: key,
}: KafkaAccessConfig): SecureContext | null {
  if (isTls) return followTlsFiles('Kafka (KAFKA_SSL_*_FILE)', { ca, cert, key });
  if (ca !== undefined || cert !== undefined || key !== undefined) {
    throw new StartupError('KAFKA_SSL_*_FILE is set and KAFKA_SSL is not: set KAFKA_SSL=true.');
  }
  return null;
}

function saslOf({
  KAFKA_SASL_MECHANISM: mechanism,
  KAFKA_SASL_USERNAME: username,
  KAFKA_SASL_PASSWORD: password,
  KAFKA_SASL_TOKEN_FILE: tokenFile,
}: KafkaAccessConfig): Sasl | null {
  if (mechanism === undefined) {
    if (username === undefined && password === undefined && tokenFile === undefined) return null;
    throw new StartupError('KAFKA_SASL_* is set and KAFKA_SASL_MECHANISM is not: set it.');
  }
  if (mechanism === 'oauthbearer') {
    if (tokenFile === undefined || username !== undefined || password !== undefined) {
      throw needs(mechanism, 'KAFKA_SASL_TOKEN_FILE');
    }
    return { mechanism, readToken: async () => (await readFile(tokenFile, 'utf8')).trim() };
  }
  if (username === undefined || password === undefined || tokenFile !== undefined) {
    throw needs(mechanism, 'KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD');
  }
  return { mechanism, username, password };
}

function needs(mechanism: string, names: string): StartupError {
  return new StartupError(`KAFKA_SASL_MECHANISM=${mechanism} needs ${names}, and no other login.`);
}
