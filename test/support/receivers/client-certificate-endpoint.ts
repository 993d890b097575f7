import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import type { TLSSocket } from 'node:tls';
import type { SelfSigned } from './self-signed.ts';

export interface ClientCertificateEndpoint {
  url: string;
  /** The fingerprint of the client's certificate of each request. */
  clients: string[];
  /** The server name in the handshake of each request; false without one. */
  serverNames: (string | false | null)[];
  /** How many connections are open. */
  openConnections: () => Promise<number>;
  close: () => Promise<void>;
}

export interface EndpointCertificates {
  own: SelfSigned;
  /** Certificates of the clients that it answers. Others do not get beyond the handshake. */
  clients: readonly string[];
}

/** Starts an https endpoint on loopback that demands a certificate of its clients. */
export async function startClientCertificateEndpoint(
  host: string,
  { own, clients: known }: EndpointCertificates,
): Promise<ClientCertificateEndpoint> {
  const clients: string[] = [];
  const serverNames: ClientCertificateEndpoint['serverNames'] = [];
  const server = createServer(
    { ...own, ca: [...known], requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      const socket = request.socket as TLSSocket;
      clients.push(socket.getPeerCertificate().fingerprint256);
      serverNames.push(socket.servername);
      response.end('ok');
    },
  );
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://${host}:${port}/hook`,
    clients,
    serverNames,
    openConnections: () => promisify(server.getConnections.bind(server))(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
