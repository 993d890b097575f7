import { createSecureContext, type SecureContext } from 'node:tls';
import type { EndpointTls } from '@posthorn/domain/webhook.ts';
import { createClosingCache } from '@posthorn/platform/memory/closing-cache.ts';
import { trustingOnly } from '@posthorn/platform/tls/secure-context.ts';
import type { IdentifiedTls } from '../../load/load-webhook.ts';
import { createDeliveryAgent, type DeliveryAgent } from './delivery-agent.ts';
import type { GuardOptions } from './guarded-connect.ts';

export interface TlsClients {
  /** Throws when OpenSSL refuses the certificates or the key. */
  agentOf: (tls: IdentifiedTls) => DeliveryAgent;
  /** Bytes that the clients hold, without their connections; also those that end their requests. */
  usedBytes: () => number;
  destroy: () => Promise<void>;
}

/** A context of OpenSSL with certificates and a key takes 24 to 38 KiB, and the HTTP client the rest. */
const CLIENT_BYTES = 65_536;

/**
 * Webhooks with TLS settings of their own have an HTTP client for each distinct settings, so that no
 * request goes over a connection that was opened with the certificate of another. To open one takes
 * 0.4 ms. The least recently used are closed when those in use hold more than
 * `maxBytes`, after their requests.
 */
export function createTlsClients(guard: GuardOptions, maxBytes: number): TlsClients {
  const open = new Set<DeliveryAgent>();
  const closeAfterRequests = async (agent: DeliveryAgent): Promise<void> => {
    await agent.close();
    open.delete(agent);
  };
  const clients = createClosingCache<DeliveryAgent>(
    Math.floor(maxBytes / CLIENT_BYTES),
    (agent) => {
      void closeAfterRequests(agent);
    },
  );
  const openClient = (tls: EndpointTls): DeliveryAgent => {
    const agent = createDeliveryAgent({ ...guard, secureContext: contextOf(tls) });
    open.add(agent);
    return agent;
  };
  return {
    agentOf: (tls) => clients.get(tls.id, () => openClient(tls)),
    usedBytes: () => open.size * CLIENT_BYTES,
    async destroy() {
      await Promise.all([...open].map((agent) => agent.destroy()));
    },
  };
}

function contextOf({ client, ca }: EndpointTls): SecureContext {
  return createSecureContext({
    ...(client && { cert: client.certificate, key: client.key }),
    ...(ca !== null && trustingOnly(ca)),
  });
}
