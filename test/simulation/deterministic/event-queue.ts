/** An event that is scheduled for a virtual time. */
export interface QueuedEvent {
  atMs: number;
  isCancelled: boolean;
  action: Action;
}

/** Returns NOTHING_TO_AWAIT if it cannot have settled a promise, so that the event loop need not turn. */
export type Action = () => unknown;
export const NOTHING_TO_AWAIT = Symbol('nothing to await');

interface Entry extends QueuedEvent {
  order: number;
}

/** Orders events by time, and events at the same time by the order in which they were added. */
export interface EventQueue {
  add: (atMs: number, action: Action) => QueuedEvent;
  /** Removes and returns the next event that is not cancelled. */
  take: () => QueuedEvent | undefined;
}

/** Creates a binary heap: a run queues thousands of events, many of them hours ahead. */
export function createEventQueue(): EventQueue {
  const heap: Entry[] = [];
  let order = 0;

  function takeFirst(): Entry | undefined {
    const first = heap[0];
    const last = heap.pop();
    if (last && first !== last) {
      heap[0] = last;
      sink(heap);
    }
    return first;
  }

  return {
    add(atMs, action) {
      const entry = { atMs, action, isCancelled: false, order: (order += 1) };
      heap.push(entry);
      rise(heap);
      return entry;
    },
    take() {
      let first = takeFirst();
      while (first?.isCancelled) first = takeFirst();
      return first;
    },
  };
}

function rise(heap: Entry[]): void {
  let index = heap.length - 1;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    if (!isBefore(heap, index, parent)) return;
    swap(heap, index, parent);
    index = parent;
  }
}

function sink(heap: Entry[]): void {
  let index = 0;
  for (;;) {
    const left = 2 * index + 1;
    let next = index;
    if (isBefore(heap, left, next)) next = left;
    if (isBefore(heap, left + 1, next)) next = left + 1;
    if (next === index) return;
    swap(heap, index, next);
    index = next;
  }
}

function isBefore(heap: readonly Entry[], index: number, other: number): boolean {
  const [a, b] = [heap[index], heap[other]];
  if (!a || !b) return false;
  return a.atMs === b.atMs ? a.order < b.order : a.atMs < b.atMs;
}

function swap(heap: Entry[], index: number, other: number): void {
  [heap[index], heap[other]] = [heap[other], heap[index]] as [Entry, Entry];
}
