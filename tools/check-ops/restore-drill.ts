import type { OpsCheck } from './ops-check.ts';
import { runProgram } from './programs/run-program.ts';

const DRILL = 'e2e/operate/backup-and-restore';
/** With the download of the stores on a new machine. */
const TIMEOUT_MS = 900_000;

export const RESTORE_DRILL: OpsCheck = {
  name: 'restore',
  shows:
    'from a copy of MongoDB and the keys alone everything is back, and what was pending is delivered',
  programs: [],
  isQuick: false,
  async run() {
    const args = ['--disable-warning=ExperimentalWarning', 'test/run.ts', DRILL];
    const output = await runProgram(process.execPath, args, { timeoutMs: TIMEOUT_MS });
    const [, passed] = /^([1-9]\d*) passed, 0 failed$/m.exec(output) ?? [];
    if (passed === undefined) throw new Error(`no test of the drill ran:\n${output}`);
    return `${passed} stories of ${DRILL}`;
  },
};
