import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FramingPage {
  /** Two origins of one server, which the browser takes for two sites. */
  origins: { ip: string; name: string };
  /** What the page shows in its frame from now on. */
  show: (url: string) => void;
  /** From now on the page does not say where the request for its frame comes from. */
  hideItself: () => void;
  close: () => Promise<void>;
}

/** Starts the site of a platform: one page with one frame. */
export async function startFramingPage(): Promise<FramingPage> {
  let shown = 'about:blank';
  let referrer = 'origin';
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.setHeader('Referrer-Policy', referrer);
    response.end(
      `<!doctype html><title>Platform</title><iframe width="800" height="600" src="${shown}"></iframe>`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origins: { ip: `http://127.0.0.1:${port}`, name: `http://localhost:${port}` },
    show(url) {
      shown = url;
    },
    hideItself() {
      referrer = 'no-referrer';
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
