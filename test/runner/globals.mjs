/** What `@jest/globals` exports to the test file that runs. */
let current = {};

/** Sets what belongs to the test file that runs next. */
export function setGlobals(globals, { moduleMocker, fakeTimersModern }) {
  const mocker = ['fn', 'spyOn', 'restoreAllMocks'].map((name) => [
    name,
    moduleMocker[name].bind(moduleMocker),
  ]);
  const timers = TIMERS.map((name) => [name, fakeTimersModern[name].bind(fakeTimersModern)]);
  current = { ...globals, jest: Object.fromEntries([...mocker, ...timers]) };
}

const TIMERS = [
  'useFakeTimers',
  'useRealTimers',
  'setSystemTime',
  'advanceTimersByTime',
  'advanceTimersByTimeAsync',
  'runAllTimers',
  'getTimerCount',
];

/** Modules that were loaded for an earlier test file call these too. */
const currentOf = (name) =>
  new Proxy(() => {}, {
    apply: (_target, _this, args) => current[name](...args),
    get: (_target, key) => current[name][key],
  });

export const afterAll = currentOf('afterAll');
export const afterEach = currentOf('afterEach');
export const beforeAll = currentOf('beforeAll');
export const beforeEach = currentOf('beforeEach');
export const describe = currentOf('describe');
export const expect = currentOf('expect');
export const it = currentOf('it');
export const jest = currentOf('jest');
export const test = currentOf('test');
