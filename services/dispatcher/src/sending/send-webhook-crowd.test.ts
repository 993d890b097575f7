import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Socket } from 'node:net';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  openLoneSender,
  TIMEOUT_MS,
  type LoneSender,
} from '../../../../test/support/process/lone-sender.ts';
import {
  openRawEndpoint,
  writeForever,
  type RawEndpoint,
} from '../../../../test/support/receivers/raw-endpoint.ts';

const CROWD = 200;

let sender: LoneSender;
let endpoint: RawEndpoint;

beforeEach(async () => {
  sender = openLoneSender({ resolve: () => Promise.resolve([]) });
  endpoint = await openRawEndpoint();
});

afterEach(async () => {
  await sender.close();
  endpoint.close();
});

function sendMany(talk: (socket: Socket) => void) {
  endpoint.talk = talk;
  return Array.from({ length: CROWD }, () => sender.send(endpoint.origin));
}

async function expectNothingLeft(): Promise<void> {
  await endpoint.allClosed();
  await eventually('the client has released every request', () => sender.held() === 0);
  endpoint.talk = (socket) => socket.end('HTTP/1.1 204 No\r\n\r\n');
  expect((await sender.send(endpoint.origin)).outcome).toBe('success');
}

const outcomes = async (attempts: ReturnType<LoneSender['send']>[]): Promise<Set<string>> =>
  new Set((await Promise.all(attempts)).map(({ outcome }) => outcome));

describe('200 attempts at once [security]', () => {
  test.each([
    ['say nothing', ''],
    ['stop in their headers', 'HTTP/1.1 200 OK\r\nx: '],
  ])('to endpoints that %s all time out at the deadline', async (_what, start) => {
    let asked = 0;
    const attempts = sendMany((socket) => {
      asked += 1;
      socket.write(start);
    });
    await eventually('all were asked', () => asked === CROWD);
    sender.timePasses(TIMEOUT_MS);
    expect(await outcomes(attempts)).toEqual(new Set(['timeout']));
    await expectNothingLeft();
  });

  test('attempts to endpoints that stop in their bodies all end at the deadline', async () => {
    const attempts = sendMany((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart'),
    );
    await eventually('all have begun to answer', () => sender.readBytes() === 4 * CROWD);
    sender.timePasses(TIMEOUT_MS);
    expect(await outcomes(attempts)).toEqual(new Set(['success']));
    await expectNothingLeft();
  });

  test('attempts to endpoints with endless bodies read 64 KiB of each', async () => {
    const attempts = sendMany((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n');
      writeForever(socket);
    });
    expect(await outcomes(attempts)).toEqual(new Set(['success']));
    // From each, 64 KiB and the piece that exceeds them.
    expect(sender.readBytes()).toBeLessThanOrEqual(CROWD * (65_536 + 4_096));
    await expectNothingLeft();
  });

  test('attempts to endpoints with 100 kB of headers are all response_too_large', async () => {
    const header = `x: ${'y'.repeat(100_000)}\r\n`;
    const attempts = sendMany((socket) => socket.write(`HTTP/1.1 200 OK\r\n${header}`));
    expect(await outcomes(attempts)).toEqual(new Set(['response_too_large']));
    await expectNothingLeft();
  });
});
