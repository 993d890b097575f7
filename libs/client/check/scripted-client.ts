import { afterAll, beforeEach } from '@jest/globals';
import { Posthorn, type PosthornOptions } from '../src/index.ts';
import { type ScriptedApi, startScriptedApi } from './scripted-api.ts';

export const API_KEY = 'phk_a-secret-key';

interface ScriptedClient {
  /** Its records are cleared before each test. */
  api: ScriptedApi;
  /** A client of it with this key, and with other options where they are given. */
  clientOf: (options?: PosthornOptions) => Posthorn;
}

/** Starts an API for the tests of one file, and closes it behind them. */
export async function startScriptedClient(): Promise<ScriptedClient> {
  const api = await startScriptedApi();
  beforeEach(() => {
    api.got.length = 0;
  });
  afterAll(() => api.close());
  return {
    api,
    clientOf: (options) => new Posthorn({ apiKey: API_KEY, baseUrl: api.baseUrl, ...options }),
  };
}

/** Resolves to what the promise is rejected with; null when it is fulfilled. */
export function errorOf(promise: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(promise).then(
    () => null,
    (error: unknown) => error,
  );
}
