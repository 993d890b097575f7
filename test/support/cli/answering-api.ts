import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answers every request with an object or, to addresses of lists, with one of it. */
export async function startApi(
  data: object,
): Promise<{ url: string; got: string[]; agents: (string | undefined)[]; server: Server }> {
  const got: string[] = [];
  const agents: (string | undefined)[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = '';
    agents.push(request.headers['user-agent']);
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      got.push([request.method, request.url?.replace('/api/v1', ''), body].join(' ').trim());
      const isList =
        /^\/api\/v1\/(\w|-)+(\?|$)|\/deliveries$|\/(ordering-keys|event-types)(\?|$)/.test(
          request.url ?? '',
        );
      const isOne =
        request.method !== 'GET' || !isList || /overview|stats|find\?/.test(String(request.url));
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ success: true, message: 'ok', data: isOne ? data : [data] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, got, agents, server };
}
