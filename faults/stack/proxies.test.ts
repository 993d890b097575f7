import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startTcpProxy, type TcpProxy } from './proxies.ts';

/** `once` would reject with the reset that is expected. */
function closeOf(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.on('close', resolve));
}

describe('the proxy in front of a store', () => {
  let store: Server;
  let proxy: TcpProxy;
  let client: Socket;

  /** The store echoes what it gets. */
  beforeEach(async () => {
    store = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.pipe(socket);
    });
    store.listen(0, '127.0.0.1');
    await once(store, 'listening');
    const { port } = store.address() as AddressInfo;
    proxy = await startTcpProxy({ to: { host: '127.0.0.1', port } });
    client = open();
  });

  afterEach(async () => {
    client.destroy();
    await proxy.close();
    store.close();
  });

  function open(): Socket {
    return connect(proxy.port, '127.0.0.1').on('error', () => undefined);
  }

  async function ask(socket: Socket, words: string): Promise<string> {
    socket.write(words);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    return answer.toString();
  }

  it('forwards what both sides send', async () => {
    expect(await ask(client, 'ping')).toBe('ping');
  });

  it('cuts the connection on which these bytes come, and no other', async () => {
    const other = open();
    proxy.cutAt('next changes');
    client.write('the next changes');
    client.on('data', (chunk: Buffer) => {
      throw new Error(`got ${chunk.toString()}`);
    });
    expect(await ask(other, 'ping')).toBe('ping');
    const closed = closeOf(client);
    proxy.mend();
    await closed;
    expect(await ask(open(), 'the next changes')).toBe('the next changes');
    other.destroy();
  });

  it('replies in place of the store to requests with these bytes, until the store does again', async () => {
    const reply = (request: Buffer): Buffer => Buffer.from(`not ${request.toString()}`);
    proxy.answerAt({ bytes: 'changes', reply });
    expect(await ask(client, 'the next changes')).toBe('not the next changes');
    expect(await ask(client, 'ping')).toBe('ping');
    proxy.answerAt(null);
    expect(await ask(client, 'the next changes')).toBe('the next changes');
  });

  it('delays requests, and keeps their order', async () => {
    await ask(client, 'before');
    proxy.delayRequestsBy(30);
    const startedMs = performance.now();
    let heard = '';
    const allHeard = new Promise<void>((resolve) => {
      client.on('data', (chunk) => {
        heard += chunk.toString();
        if (heard.length === 3) resolve();
      });
    });
    client.write('a');
    client.write('b');
    client.write('c');
    await allHeard;
    expect(heard).toBe('abc');
    expect(performance.now() - startedMs).toBeGreaterThan(25);
  });

  it('holds a cut connection open, and resets it when it is mended', async () => {
    await ask(client, 'before');
    proxy.cut();
    client.write('unheard');
    const heard: string[] = [];
    client.on('data', (chunk) => heard.push(chunk.toString()));
    const another = open();
    await once(another, 'connect');
    expect(client.readyState).toBe('open');
    const closed = closeOf(client);
    proxy.mend();
    await closed;
    expect(heard).toEqual([]);
    expect(await ask(open(), 'again')).toBe('again');
  });

  it('resets every connection on request', async () => {
    await ask(client, 'before');
    const closed = closeOf(client);
    proxy.resetAll();
    await closed;
    expect(await ask(open(), 'again')).toBe('again');
  });
});
