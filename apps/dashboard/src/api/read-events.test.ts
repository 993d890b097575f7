import { expect, it } from '@jest/globals';
import { readEvents, type ServerEvent } from './read-events.ts';

function streamOf(...chunks: string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
      controller.close();
    },
  });
}

async function eventsOf(...chunks: string[]): Promise<ServerEvent[]> {
  return Array.fromAsync(readEvents(streamOf(...chunks)));
}

it('reads events however the stream is cut', async () => {
  const events = await eventsOf('event: pi', 'ng\ndata: {}\n', '\nevent: more\r\ndata: 1\r\n\r\n');
  expect(events).toEqual([
    { event: 'ping', data: '{}' },
    { event: 'more', data: '1' },
  ]);
});

it('joins the lines of data, and drops an event that is not complete', async () => {
  expect(await eventsOf('data: a\ndata: b\n\nevent: attempt\n')).toEqual([
    { event: 'message', data: 'a\nb' },
  ]);
});

it('refuses an event that does not end', async () => {
  const endless = Array<string>(20).fill(`data: ${'x'.repeat(4_000)}\n`);
  await expect(eventsOf(...endless)).rejects.toThrow('The stream has an event without an end.');
});
