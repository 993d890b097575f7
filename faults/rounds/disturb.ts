import type { Scene } from '../round.ts';
import { type Killed, type Member, startMembers } from '../stack/fleet.ts';
import type { StoreName } from '../stack/start-stores.ts';

const KILL_EVERY_MS = 20_000;
const REBALANCE_EVERY_MS = 30_000;

/** A store that is frozen, for so long, after this share of the time of the round. */
export interface Freeze {
  store: StoreName;
  afterShare: number;
  frozenMs: number;
}

export interface Freezes {
  run: () => Promise<void>;
  /** Does its work while every store answers, and keeps all from being frozen meanwhile: no service would start or stop. */
  whileThawed: (work: () => Promise<void>) => Promise<void>;
  /**
   * Since when a store has been frozen, in milliseconds since 1970, also until what waited for it is recorded; null
   * otherwise.
   */
  frozenSinceMs: () => number | null;
}

/** Outcomes that waited for a frozen store are recorded by then. */
const RECORDED_AFTER_MS = 10_000;

/** Freezes one store after the other. */
export function createFreezes(
  { stores, pause, seconds, say }: Scene,
  freezes: readonly Freeze[],
): Freezes {
  let frozen: Promise<void> = Promise.resolve();
  let working: Promise<void> = Promise.resolve();
  let last = { sinceMs: 0, untilMs: -Infinity };
  const freeze = async ({ store, frozenMs }: Freeze): Promise<void> => {
    stores[store].freeze();
    last = { sinceMs: Date.now(), untilMs: Infinity };
    say(`${store} is frozen for ${Math.round(frozenMs / 1_000)} s`);
    await pause(frozenMs).finally(() => {
      stores[store].thaw();
      last.untilMs = Date.now();
    });
  };
  return {
    frozenSinceMs: () => (Date.now() < last.untilMs + RECORDED_AFTER_MS ? last.sinceMs : null),
    async whileThawed(work) {
      await frozen;
      working = work();
      await working;
    },
    async run() {
      for (const each of freezes) {
        await pause(seconds * 1_000 * each.afterShare);
        await working;
        frozen = freeze(each);
        await frozen;
      }
    },
  };
}

/** Which members are killed and restarted; `turn` counts both from 0. */
interface Victims {
  killed: (turn: number) => readonly Member[];
  restarted: (turn: number) => Member;
  /** Called after each kill. */
  onKilled?: (member: Member, killed: Killed) => void;
}

/** Kills members every 20 s and starts them again, and restarts one in good order every 30 s. */
export async function disturbProcesses(
  { fleet, pause, seconds, say }: Scene,
  { whileThawed }: Freezes,
  { killed, restarted, onKilled }: Victims,
): Promise<void> {
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  let [kills, restarts] = [0, 0];
  for (;;) {
    const isKill = (kills + 1) * KILL_EVERY_MS <= (restarts + 1) * REBALANCE_EVERY_MS;
    const dueMs = isKill ? (kills + 1) * KILL_EVERY_MS : (restarts + 1) * REBALANCE_EVERY_MS;
    if (dueMs > seconds * 1_000) break;
    await pause(Math.max(0, dueMs - elapsedMs()));
    const turn = kills + restarts;
    if (isKill) {
      kills += 1;
      const members = killed(turn);
      for (const member of members) onKilled?.(member, await fleet.kill(member));
      say(`${kills} kills, ${restarts} restarts`);
      await whileThawed(() => startMembers(fleet, members));
    } else {
      restarts += 1;
      const member = restarted(turn);
      await whileThawed(async () => {
        await fleet.stop(member);
        await fleet.start(member);
      });
      say(`${kills} kills, ${restarts} restarts`);
    }
  }
}
