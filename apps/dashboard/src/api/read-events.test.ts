import { expect, it } from '@jest/globals';
import { readEvents } from './read-events.ts';

function streamOf(...chunks: string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
      controller.close();
    },
  });
}

async function eventsOf(...chunks: string[]): Promise<[event: string | undefined, data: string][]> {
  const events = await Array.fromAsync(readEvents(streamOf(...chunks)));
  return events.map(({ event, data }) => [event, data]);
}

it('reads events however the stream is cut', async () => {
  const events = await eventsOf('event: pi', 'ng\ndata: {}\n', '\nevent: more\r\ndata: 1\r\n\r\n');
  expect(events).toEqual([
    ['ping', '{}'],
    ['more', '1'],
  ]);
});

it('joins the lines of data, and drops an event that is not complete', async () => {
  expect(await eventsOf('data: a\ndata: b\n\nevent: attempt\n')).toEqual([[undefined, 'a\nb']]);
});

it('refuses an event that does not end', async () => {
  const endless = Array<string>(20).fill(`data: ${'x'.repeat(4_000)}\n`);
  await expect(eventsOf(...endless)).rejects.toThrow(
    'exceeded max buffer size of 65536 characters',
  );
});
