import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Consumer, Kafka } from 'kafkajs';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { type GroupClient, type GroupEvents, createGroupClient } from './group-client.ts';

type Listener = (event: { payload: object }) => void;

let listeners: Map<string, Listener>;
let runs: number;
let seen: string[];
let client: GroupClient;

/** The surface of a kafkajs consumer that reads nothing. */
function consumerWithEvents(): Consumer {
  const nothing = (): Promise<void> => Promise.resolve();
  const names = ['FETCH_START', 'REBALANCING', 'HEARTBEAT', 'GROUP_JOIN', 'CRASH'];
  return {
    events: Object.fromEntries(names.map((name) => [name, name])),
    on: (name: string, listener: Listener) => listeners.set(name, listener),
    connect: nothing,
    subscribe: nothing,
    disconnect: nothing,
    run: () => Promise.resolve(void (runs += 1)),
  } as unknown as Consumer;
}

beforeEach(async () => {
  listeners = new Map();
  [runs, seen] = [0, []];
  const kafka: Pick<Kafka, 'consumer'> = { consumer: consumerWithEvents };
  const options = {
    groupId: 'group',
    topics: ['a'],
    inFlightLimits: { pauseAt: 10, resumeAt: 5 },
    handle: () => Promise.resolve(),
  };
  const nothing = (): void => undefined;
  const events: GroupEvents = {
    onFetch: nothing,
    onRebalancing: () => Promise.resolve(),
    onConfirmed: nothing,
    onJoined: nothing,
    onBatch: nothing,
    onLost: () => seen.push('lost'),
    onFatal: (error) => seen.push(`fatal: ${error.message}`),
  };
  client = createGroupClient(kafka, options, events, () => Buffer.from('instance'));
  await client.start();
});

function crash(error: Error, restart = false): void {
  listeners.get('CRASH')?.({ payload: { error, restart } });
}

/** As kafkajs wraps what ended its consumer. */
function gaveUp(name: string, message: string): Error {
  const cause = Object.assign(new Error(message), { name });
  return Object.assign(new Error(message, { cause }), { name: 'KafkaJSNonRetriableError' });
}

const noCoordinator = (): Error =>
  gaveUp('KafkaJSGroupCoordinatorNotFound', 'Failed to find group coordinator');

describe('a member of a group on kafkajs that crashed', () => {
  test('joins again when kafkajs gives up because no broker responded', async () => {
    crash(noCoordinator());
    expect(seen).toEqual(['lost']);
    await eventually('it runs again', () => runs === 2);
  });

  test('joins again each time', async () => {
    crash(noCoordinator());
    await eventually('it runs again', () => runs === 2);
    crash(noCoordinator());
    await eventually('it runs again', () => runs === 3);
    expect(seen).toEqual(['lost', 'lost']);
  });

  test('leaves the restart to kafkajs when it makes one', () => {
    crash(noCoordinator(), true);
    expect(seen).toEqual(['lost']);
    expect(runs).toBe(1);
  });

  test('ends on a fault of the program', () => {
    crash(gaveUp('TypeError', 'x is not a function'));
    expect(seen).toEqual(['fatal: x is not a function']);
  });

  test('does not join again once it has left', async () => {
    crash(noCoordinator());
    await client.leave();
    expect(runs).toBe(1);
    crash(noCoordinator());
    expect(seen).toEqual(['lost']);
  });
});
