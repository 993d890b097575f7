import { beforeEach, describe, expect, test } from '@jest/globals';
import mongoose, { type mongo } from 'mongoose';
import { EventEmitter } from 'node:events';
import { Registry } from 'prom-client';
import { StoreUnavailableError } from '../service/errors.ts';
import { asStoreError, onNewPrimary, watchClient, withoutOptionsOf } from './connect.ts';

const { MongoDriverError, MongoServerError } = mongoose.mongo;

/** As the pool of the driver throws it; its class is not exported. */
function poolError(name: string): Error {
  return Object.defineProperty(new MongoDriverError('timed out'), 'name', { value: name });
}

/** As Node gives it to the driver. */
function writeError(code: string): Error {
  return Object.assign(new Error(`write ${code}`), { code, syscall: 'write' });
}

describe('an error of MongoDB', () => {
  test.each([
    ['a connection that was reset under a large command', writeError('ECONNRESET')],
    ['a connection that was closed under a large command', writeError('EPIPE')],
    ['a pool without a free connection', poolError('MongoWaitQueueTimeoutError')],
    ['a read on a server that steps down', new MongoServerError({ code: 11_602 })],
    ['a read on a server that is no longer the primary', new MongoServerError({ code: 10_107 })],
  ])('counts as unavailable: %s', (_what, error) => {
    expect(asStoreError(error)).toBeInstanceOf(StoreUnavailableError);
  });

  test.each([
    ['a refused document', new MongoServerError({ code: 121 })],
    ['a fault of ours', new TypeError('x is undefined')],
    ['no error at all', 'text'],
  ])('is returned as it is: %s', (_what, error) => {
    expect(asStoreError(error)).toBe(error);
  });
});

test('an option in the URL wins over ours, however it is written', () => {
  const ours = { maxPoolSize: 20, socketTimeoutMS: 20_000 };
  expect(withoutOptionsOf('mongodb://a/b?maxpoolsize=50&tls=true', ours)).toEqual({
    socketTimeoutMS: 20_000,
  });
  expect(withoutOptionsOf('mongodb://a/b', ours)).toEqual(ours);
});

describe('watch client', () => {
  const ERRORS = 'posthorn_store_errors_total{store="mongodb",operation';
  const SECONDS = 'posthorn_store_operation_duration_seconds_count{store="mongodb",operation';

  let registry: Registry;
  let client: EventEmitter;

  beforeEach(() => {
    registry = new Registry();
    client = new EventEmitter();
    watchClient(registry, client as unknown as mongo.MongoClient, 20);
  });

  describe('the commands of a MongoDB client', () => {
    test('are timed, those that are not told apart together', async () => {
      client.emit('commandSucceeded', { commandName: 'insert', duration: 3, reply: { ok: 1 } });
      client.emit('commandSucceeded', {
        commandName: 'endSessions',
        duration: 0,
        reply: { ok: 1 },
      });
      const text = await registry.metrics();
      expect(text).toContain(`${SECONDS}="insert"} 1`);
      expect(text).toContain(`${SECONDS}="other"} 1`);
      expect(text).toContain(`${ERRORS}="insert"} 0`);
    });

    test('count as errors when they fail, and when no majority has confirmed them', async () => {
      client.emit('commandFailed', { commandName: 'find', duration: 3 });
      const reply = { ok: 1, writeConcernError: { code: 64 } };
      client.emit('commandSucceeded', { commandName: 'update', duration: 3, reply });
      const text = await registry.metrics();
      expect(text).toContain(`${ERRORS}="find"} 1`);
      expect(text).toContain(`${ERRORS}="update"} 1`);
    });
  });

  describe('an operation that sends no command', () => {
    test('counts as an error when no connection was free, but not when the process stops', async () => {
      for (const reason of ['timeout', 'connectionError', 'poolClosed']) {
        client.emit('connectionCheckOutFailed', { reason, durationMS: 5_000 });
      }
      const text = await registry.metrics();
      expect(text).toContain(`${ERRORS}="checkOut"} 2`);
      expect(text).toContain(`${SECONDS}="checkOut"} 2`);
    });

    test('counts as an error when no server was found, and its caller gets the error', async () => {
      const answers = [Promise.resolve('server'), Promise.reject(new Error('no primary'))];
      const topology = { selectServer: () => answers.shift() };
      const connected = Object.assign(new EventEmitter(), { topology });
      registry = new Registry();
      watchClient(registry, connected as unknown as mongo.MongoClient, 20);
      expect(await topology.selectServer()).toBe('server');
      await expect(topology.selectServer()).rejects.toThrow('no primary');
      const text = await registry.metrics();
      expect(text).toContain(`${ERRORS}="selectServer"} 1`);
      expect(text).not.toContain(`${SECONDS}="find"}`);
    });
  });

  describe('the connections of a MongoDB client', () => {
    const event = (connectionId: number) => ({ address: 'db:27017', connectionId });
    const CONNECTIONS = 'posthorn_mongodb_connections{state';

    test('are open until they are closed, and in use while an operation has them', async () => {
      for (const id of [1, 2, 3]) client.emit('connectionCreated', event(id));
      client.emit('connectionCheckedOut', event(1));
      client.emit('connectionCheckedOut', event(2));
      client.emit('connectionCheckedIn', event(1));
      client.emit('connectionClosed', event(2));
      const text = await registry.metrics();
      expect(text).toContain(`${CONNECTIONS}="open"} 2`);
      expect(text).toContain(`${CONNECTIONS}="in_use"} 0`);
      expect(text).toContain(`${CONNECTIONS}="limit"} 20`);
    });

    test('that were there before anybody listened are counted with their first use', async () => {
      client.emit('connectionCheckedOut', event(1));
      expect(await registry.metrics()).toContain(`${CONNECTIONS}="open"} 1`);
    });
  });
});

test('a new primary is noticed, and no other change of a replica set', () => {
  const client = new EventEmitter();
  let noticed = 0;
  onNewPrimary(client as unknown as mongo.MongoClient, () => (noticed += 1));
  const stateOf = (...members: [address: string, type: string][]) => ({
    servers: new Map(members.map(([address, type]) => [address, { address, type }])),
  });
  const change = (previousDescription: object, newDescription: object): number => {
    client.emit('topologyDescriptionChanged', { previousDescription, newDescription });
    return noticed;
  };
  const first = stateOf(['a:1', 'RSPrimary'], ['b:1', 'RSSecondary']);
  const none = stateOf(['a:1', 'Unknown'], ['b:1', 'RSSecondary']);
  const second = stateOf(['a:1', 'RSSecondary'], ['b:1', 'RSPrimary']);
  expect(change(first, first)).toBe(0);
  expect(change(first, none)).toBe(0);
  expect(change(none, second)).toBe(1);
  expect(change(first, second)).toBe(2);
});
