import { describe, expect, it, jest } from '@jest/globals';
import type { Child, StackProcess } from '../../tools/local-stack/processes/child.ts';
import type { ExitListener } from '../../tools/local-stack/processes/children.ts';
import { createFleet, type Member } from './fleet.ts';

/** A fleet of processes that end when they are told to, and in no other way. */
function openFleet(exit = 'exit code 0') {
  const listeners: ExitListener[] = [];
  const launched: Member[] = [];
  const childOf = (member: Member): Child => ({
    name: member,
    pid: launched.length,
    port: 0,
    log: '',
    exited: Promise.resolve(exit),
    isExitExpected: () => true,
    stop: () => Promise.resolve(),
    kill: () => Promise.resolve(),
  });
  const fleet = createFleet({
    children: { onUnexpectedExit: (listener) => void listeners.push(listener) },
    launch: (member) => {
      launched.push(member);
      return { child: childOf(member), ready: Promise.resolve() };
    },
  });
  const crash = (name: string): void => {
    const child: StackProcess = { name, pid: 1, port: 0, log: '' };
    for (const listener of listeners) listener(child, 'exit code 1');
  };
  return { fleet, launched, crash };
}

describe('the fleet of services', () => {
  it('notes how each stop ended, once', async () => {
    const { fleet } = openFleet('exit code 7');
    await fleet.start('retry-1');
    await fleet.stop('retry-1');
    expect(fleet.takeEnds().stops).toMatchObject([{ service: 'retry-1', exit: 'exit code 7' }]);
    expect(fleet.takeEnds()).toEqual({ stops: [], crashes: [] });
  });

  it('does not start a member twice, and starts it again after it was killed', async () => {
    const { fleet, launched } = openFleet();
    await fleet.start('gateway-1');
    await fleet.start('gateway-1');
    expect(launched).toEqual(['gateway-1']);
    await fleet.kill('gateway-1');
    expect(fleet.running()).toEqual([]);
    await fleet.start('gateway-1');
    expect(launched).toEqual(['gateway-1', 'gateway-1']);
  });

  it('notes a member that ends by itself, and starts it again', async () => {
    jest.useFakeTimers();
    const { fleet, launched, crash } = openFleet();
    await fleet.start('dispatcher-2');
    crash('dispatcher-2');
    crash('kafka');
    expect(fleet.running()).toEqual([]);
    jest.runAllTimers();
    jest.useRealTimers();
    expect(launched).toEqual(['dispatcher-2', 'dispatcher-2']);
    expect(fleet.takeEnds().crashes).toEqual(['dispatcher-2: exit code 1']);
  });
});
