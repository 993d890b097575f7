import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';

/** An attempt has less than 1 KiB. What a proxy sends in place of the stream may have no end. */
const MAX_EVENT_CHARS = 65_536;

/**
 * Yields the events of a `text/event-stream`. `EventSource` cannot send the header of the session. Throws for an event
 * of more than 64 Ki characters.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<EventSourceMessage> {
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ maxBufferSize: MAX_EVENT_CHARS }));
  // Not every browser iterates over a stream by itself.
  const reader = events.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
