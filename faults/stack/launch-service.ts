import { join } from 'node:path';
import { type Child, failOnExit } from '../../tools/local-stack/processes/child.ts';
import type { Children } from '../../tools/local-stack/processes/children.ts';
import { NODE_FLAGS } from '../../tools/local-stack/supervisor/services.ts';
import { waitUntil } from '../../tools/local-stack/waiting.ts';
import { type Changed, KILLED_AFTER_MS, type Member } from './fleet.ts';

const ROOT = join(import.meta.dirname, '../..');
const READY_WITHIN_MS = 120_000;

export interface LaunchDeps {
  stackDir: string;
  children: Children;
  ports: ReadonlyMap<Member, MemberPorts>;
  /** The settings of a member. */
  envOf: (member: Member) => NodeJS.ProcessEnv;
}

export interface MemberPorts {
  /** Of the API; used by gateways only. */
  port: number;
  opsPort: number;
}

/** Starts a process of a service, with a log of its own for each start. */
export function createLaunch({ stackDir, children, ports, envOf }: LaunchDeps) {
  let starts = 0;
  return (member: Member, { root = ROOT, env = {} }: Changed) => {
    const { port, opsPort } = ports.get(member) ?? { port: 0, opsPort: 0 };
    const child = children.start({
      name: member,
      command: process.execPath,
      args: [...NODE_FLAGS, join(root, `services/${serviceOf(member)}/src/main.ts`)],
      env: { ...envOf(member), ...env, PORT: String(port), OPS_PORT: String(opsPort) },
      cwd: root,
      port: opsPort,
      logPath: join(stackDir, 'logs', `${member}-start-${(starts += 1)}.log`),
      stopTimeoutMs: KILLED_AFTER_MS,
    });
    return { child, ready: untilReady(child, opsPort) };
  };
}

export function serviceOf(member: Member): string {
  return member.slice(0, member.lastIndexOf('-'));
}

async function untilReady(child: Child, opsPort: number): Promise<void> {
  const what = `${child.name} to be ready (log: ${child.log})`;
  const poll = { what, timeoutMs: READY_WITHIN_MS, intervalMs: 100 };
  await failOnExit(
    child,
    waitUntil(poll, () => isReady(opsPort)),
  );
}

async function isReady(opsPort: number): Promise<boolean> {
  try {
    const url = `http://127.0.0.1:${opsPort}/readyz`;
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).status === 200;
  } catch {
    return false;
  }
}
