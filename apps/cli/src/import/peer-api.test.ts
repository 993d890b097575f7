import { afterEach, describe, expect, it } from '@jest/globals';
import { type FakePeer, startFakePeer } from '../../../../test/support/peers/fake-peer.ts';
import { EXIT } from '../failures.ts';
import { mapConcurrently, PeerApi, PeerGone, PeerRefusal } from './peer-api.ts';

const TOKEN = 'testsk_very.secret';
const peers: FakePeer[] = [];

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.close()));
});

async function start(signal = new AbortController().signal) {
  const peer = await startFakePeer(TOKEN, (path) =>
    path === '/things' ? { body: { data: [1] } } : null,
  );
  peers.push(peer);
  const waits: number[] = [];
  const sleep = (ms: number): Promise<void> => {
    waits.push(ms);
    signal.throwIfAborted();
    return Promise.resolve();
  };
  const settings = { name: 'Peer', url: peer.url, signal, sleep };
  const connect = (token: string): PeerApi => new PeerApi({ ...settings, token });
  return { peer, waits, connect, api: connect(TOKEN) };
}

describe('a request to the other service', () => {
  it('returns the object with fields that its document does not know', async () => {
    const { api } = await start();

    expect(await api.get('/things')).toMatchObject({ data: [1], addedLater: expect.anything() });
  });

  it('waits as long as Retry-After asks, and repeats', async () => {
    const { api, peer, waits } = await start();
    peer.answerNext({ status: 429, retryAfter: '7' }, 2);

    expect(await api.get('/things')).toMatchObject({ data: [1] });
    expect(waits).toEqual([7_000, 7_000]);
  });

  it('repeats after an error of the server and after a reset in the middle of the answer', async () => {
    const { api, peer, waits } = await start();
    peer.answerNext({ status: 503 });
    peer.resetNext(2);

    expect(await api.get('/things')).toMatchObject({ data: [1] });
    expect(waits).toEqual([500, 1_000, 2_000]);
  });

  it('ends after bounded attempts', async () => {
    const { api, peer, waits } = await start();
    peer.answerNext({ status: 500 }, 100);

    await expect(api.get('/things')).rejects.toThrow('Peer answered 500 (GET /things)');
    expect(waits).toHaveLength(5);
  });

  it('does not wait for an hour', async () => {
    const { api, peer, waits } = await start();
    peer.answerNext({ status: 429, retryAfter: '3600' });

    await expect(api.get('/things')).rejects.toMatchObject({ status: 429 });
    expect(waits).toEqual([]);
  });

  it('reports a service that cannot be reached as such', async () => {
    const { api, peer } = await start();
    await peer.close();

    await expect(api.get('/things')).rejects.toMatchObject({
      name: 'PeerGone',
      exitCode: EXIT.unreachable,
    });
  });

  it('reports a wrong token, and never shows it', async () => {
    const { connect } = await start();
    const error = await connect('wrong-token')
      .get('/things')
      .catch((each: unknown) => each);

    expect(error).toMatchObject({ name: 'PeerGone', exitCode: EXIT.notAllowed });
    expect(String(error)).not.toContain('wrong-token');
    expect(() => connect('two\nlines')).toThrow('The token of Peer is empty');
  });

  it('finds nothing where the service answers 404', async () => {
    const { api } = await start();

    expect(await api.find('/other')).toBeNull();
    await expect(api.get('/other')).rejects.toBeInstanceOf(PeerRefusal);
  });

  it('gives up a service that refuses everything', async () => {
    const { api, peer } = await start();
    peer.refuse(/things/, 403);
    const errors = [];
    for (let nth = 0; nth < 20; nth += 1) {
      errors.push(await api.get('/things').catch((error: unknown) => error));
    }

    expect(errors.at(-2)).toBeInstanceOf(PeerRefusal);
    expect(errors.at(-1)).toBeInstanceOf(PeerGone);
  });

  it('ends with the reason of the signal', async () => {
    const controller = new AbortController();
    const { api } = await start(controller.signal);
    const reason = new Error('interrupted');
    controller.abort(reason);

    await expect(api.get('/things')).rejects.toBe(reason);
  });
});

describe('work on several at once', () => {
  it('keeps the order, and starts no more than the limit ahead of what is taken', async () => {
    const started: number[] = [];
    const numbers = Array.from({ length: 100 }, (_, nth) => nth);
    const results = mapConcurrently(numbers, 3, async (each) => {
      started.push(each);
      await Promise.resolve();
      return each * 2;
    });

    expect((await results.next()).value).toBe(0);
    expect(started).toEqual([0, 1, 2]);
    const rest = [];
    for await (const each of results) rest.push(each);
    expect(rest).toEqual(Array.from({ length: 99 }, (_, nth) => (nth + 1) * 2));
  });
});
